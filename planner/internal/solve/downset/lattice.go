package downset

// lattice has down-sets of an order, numbered by size from the empty one to the full one. A
// down-set is a set of items that can precede a cut.
type lattice struct {
	// The sets with one item more than set i are next[first[i]:first[i+1]], and item has the item
	// that each adds.
	first, next, item []int32
	// parent is a set with one item less, and via that item.
	parent, via []int32
	// complete: the lattice has every down-set.
	complete bool
}

func (sets *lattice) len() int { return len(sets.parent) }

// members lists a set's items, the last first.
func (sets *lattice) members(set int32) []int32 {
	var items []int32
	for ; set != 0; set = sets.parent[set] {
		items = append(items, sets.via[set])
	}
	return items
}

// chainLattice returns the prefixes of one linear extension.
func chainLattice(items []int) *lattice {
	sets := &lattice{first: []int32{0}, parent: []int32{-1}, via: []int32{-1}}
	for i, item := range items {
		sets.next, sets.item = append(sets.next, int32(i+1)), append(sets.item, int32(item))
		sets.first = append(sets.first, int32(i+1))
		sets.parent, sets.via = append(sets.parent, int32(i)), append(sets.via, int32(item))
	}
	sets.first = append(sets.first, int32(len(items)))
	return sets
}
