package downset

// lattice holds down-sets of an order, the sets that can stand before a cut,
// numbered by size from the empty one to the full one.
type lattice struct {
	// The sets that hold one item more than set i are next[first[i]:first[i+1]],
	// and item is what each of them adds.
	first, next, item []int32
	// parent is one set with an item less, via that item.
	parent, via []int32
	// complete: no down-set was left out.
	complete bool
}

func (l *lattice) len() int { return len(l.parent) }

// members lists a set's items, the last first.
func (l *lattice) members(set int32) []int32 {
	var items []int32
	for ; set != 0; set = l.parent[set] {
		items = append(items, l.via[set])
	}
	return items
}

// chainLattice holds the prefixes of one linear extension.
func chainLattice(items []int) *lattice {
	l := &lattice{first: []int32{0}, parent: []int32{-1}, via: []int32{-1}}
	for i, v := range items {
		l.next, l.item = append(l.next, int32(i+1)), append(l.item, int32(v))
		l.first = append(l.first, int32(i+1))
		l.parent, l.via = append(l.parent, int32(i)), append(l.via, int32(v))
	}
	l.first = append(l.first, int32(len(items)))
	return l
}
