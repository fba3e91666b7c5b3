package planner

import "slices"

// anchor splits the tied units of the graph into what is free and what must
// follow. A group whose first unit opens the chain (a language model's
// embedding) is free to sit anywhere. Where something runs before that unit
// (a vision tower), it keeps its place, so that each device has one run of
// the chain, and the others follow it.
func anchor(tied [][]int) (free, follow [][]int) {
	for _, units := range tied {
		if units[0] == 0 {
			free = append(free, units)
			continue
		}
		free = append(free, units[1:])
		follow = append(follow, units)
	}
	return free, follow
}

// makeGroups numbers the groups, and merges those that a together-group
// joins.
func (l *layout) makeGroups(groups, joined [][]int) {
	for u := range l.groupOf {
		l.groupOf[u] = -1
	}
	for _, units := range groups {
		l.groups = append(l.groups, slices.Clone(units))
	}
	for g, units := range l.groups {
		for _, u := range units {
			l.groupOf[u] = g
		}
	}
	for _, set := range joined {
		first := -1
		for _, u := range set {
			switch g := l.groupOf[u]; {
			case g < 0 || g == first:
			case first < 0:
				first = g
			default:
				l.mergeGroups(g, first)
			}
		}
	}
	l.compactGroups()
}

func (l *layout) mergeGroups(from, to int) {
	for _, u := range l.groups[from] {
		l.groupOf[u] = to
	}
	l.groups[to] = append(l.groups[to], l.groups[from]...)
	l.groups[from] = nil
}

// compactGroups drops the groups that were merged into others.
func (l *layout) compactGroups() {
	kept := l.groups[:0:0]
	for _, units := range l.groups {
		if units == nil {
			continue
		}
		slices.Sort(units)
		for _, u := range units {
			l.groupOf[u] = len(kept)
		}
		kept = append(kept, units)
	}
	l.groups = kept
}

// makeItems cuts the chain into items: a unit each, or the whole stretch that
// a together-group spans. Items that share a together-group with a tied unit
// follow its group.
func (l *layout) makeItems(joined [][]int) {
	place := make([]int, len(l.groupOf)) // of a unit in order
	for u, g := range l.groupOf {
		place[u] = len(l.order)
		if g < 0 {
			l.order = append(l.order, u)
		}
	}
	glued := make([]bool, len(l.order)+1) // no item starts here
	for _, set := range joined {
		lo, hi := l.span(set, place)
		for i := lo + 1; i <= hi; i++ {
			glued[i] = true
		}
	}
	itemOf := make([]int, len(l.order))
	for i := range l.order {
		if !glued[i] {
			l.start = append(l.start, i)
		}
		itemOf[i] = len(l.start) - 1
	}
	l.start = append(l.start, len(l.order))
	l.follow = make([][]int, len(l.groups))
	for _, set := range joined {
		lo, hi := l.span(set, place)
		for _, u := range set {
			if g := l.groupOf[u]; g >= 0 && lo <= hi {
				l.follow[g] = append(l.follow[g], itemOf[lo])
				break
			}
		}
	}
}

// span is the first and last place in the chain of a set's untied units; lo
// is past hi where it has none.
func (l *layout) span(set, place []int) (lo, hi int) {
	lo, hi = len(l.order), -1
	for _, u := range set {
		if l.groupOf[u] < 0 {
			lo, hi = min(lo, place[u]), max(hi, place[u])
		}
	}
	return lo, hi
}
