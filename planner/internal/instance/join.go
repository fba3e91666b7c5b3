package instance

import (
	"slices"
)

// anchor splits the graph's tied units into free and following ones. A group whose first unit opens
// the chain (a language model's embedding) may be on any device. If another unit runs before it (a
// vision tower), the first unit stays in the chain, and the others follow it. Each device then has
// one run of the chain. Units that a forward joins follow too: its code needs them on the first
// device.
func anchor(tied [][]int, joined func(unit int) bool) (free, follow [][]int) {
	for _, units := range tied {
		if units[0] == 0 && !slices.ContainsFunc(units, joined) {
			free = append(free, units)
			continue
		}
		free = append(free, units[1:])
		follow = append(follow, units)
	}
	return free, follow
}

// makeGroups numbers the groups, and merges those in one together-group.
func (items *Items) makeGroups(groups, joined [][]int) {
	for unit := range items.GroupOf {
		items.GroupOf[unit] = -1
	}
	for _, units := range groups {
		items.Groups = append(items.Groups, slices.Clone(units))
	}
	for group, units := range items.Groups {
		for _, unit := range units {
			items.GroupOf[unit] = group
		}
	}
	for _, set := range joined {
		first := -1
		for _, unit := range set {
			switch group := items.GroupOf[unit]; {
			case group < 0 || group == first:
			case first < 0:
				first = group
			default:
				items.mergeGroups(group, first)
			}
		}
	}
	items.compactGroups()
}

func (items *Items) mergeGroups(from, to int) {
	for _, unit := range items.Groups[from] {
		items.GroupOf[unit] = to
	}
	items.Groups[to] = append(items.Groups[to], items.Groups[from]...)
	items.Groups[from] = nil
}

// compactGroups drops groups that were merged into others.
func (items *Items) compactGroups() {
	remaining := items.Groups[:0:0]
	for _, units := range items.Groups {
		if units == nil {
			continue
		}
		slices.Sort(units)
		for _, unit := range units {
			items.GroupOf[unit] = len(remaining)
		}
		remaining = append(remaining, units)
	}
	items.Groups = remaining
}

// makeItems cuts the chain into items: single units, or all units that a together-group spans.
// Items in a together-group with a tied unit follow its group.
func (items *Items) makeItems(joined [][]int) {
	place := make([]int, len(items.GroupOf)) // of each unit in the order
	for unit, group := range items.GroupOf {
		place[unit] = len(items.Order)
		if group < 0 {
			items.Order = append(items.Order, unit)
		}
	}
	glued := make([]bool, len(items.Order)+1) // no item starts here
	for _, set := range joined {
		lo, hi := items.span(set, place)
		for i := lo + 1; i <= hi; i++ {
			glued[i] = true
		}
	}
	itemOf := make([]int, len(items.Order))
	for i := range items.Order {
		if !glued[i] {
			items.Start = append(items.Start, i)
		}
		itemOf[i] = len(items.Start) - 1
	}
	items.Start = append(items.Start, len(items.Order))
	items.Follow = make([][]int, len(items.Groups))
	for _, set := range joined {
		lo, hi := items.span(set, place)
		for _, unit := range set {
			if group := items.GroupOf[unit]; group >= 0 && lo <= hi {
				items.Follow[group] = append(items.Follow[group], itemOf[lo])
				break
			}
		}
	}
}

// span returns the first and last place in the chain of a set's untied units. lo is larger than hi
// if there are none.
func (items *Items) span(set, place []int) (lo, hi int) {
	lo, hi = len(items.Order), -1
	for _, unit := range set {
		if items.GroupOf[unit] < 0 {
			lo, hi = min(lo, place[unit]), max(hi, place[unit])
		}
	}
	return lo, hi
}

// staying returns the tie groups on the devices. A group leaves only as a whole.
func staying(tied [][]int, left []int) [][]int {
	return slices.DeleteFunc(slices.Clone(tied), func(units []int) bool { return slices.Contains(left, units[0]) })
}
