package assign

import (
	"cmp"
	"context"
	"slices"
)

type verdict int

const (
	no verdict = iota
	yes
	stopped
)

// failedBytes bounds what is remembered of failures.
const failedBytes = 128 << 20

// search asks whether all items fit under caps, by bin completion.
type search struct {
	ctx    context.Context
	it     *itemTable
	caps   []int64 // of each group of devices with equal room, falling
	left   []int   // devices not yet filled, of each group
	rem    []int   // items not yet placed, of each kind
	count  int     // their number
	prices []price
	// steps counts work in small units for the context; nodes is the budget.
	steps, nodes int64
	cut          bool
	// again: ask the linear program anew within the search, each time this many
	// nodes were spent below one; 0: never.
	again      int64
	known      *pool
	failed     map[string]struct{}
	failedSize int
	levels     []*level
	chosen     []filled
	key        []byte
}

// filled is one device of a group with what it takes.
type filled struct {
	group int
	items []taken
}

// taken is a number of items of one kind.
type taken struct{ kind, count int }

// level is what one depth of the search keeps for reuse.
type level struct {
	reach reach
	fill  filler
	begin int64 // nodes to spend when it was entered
	asked bool  // the linear program, since
}

// run answers for what is left.
func (find *search) run() verdict { return find.node(0) }

func (find *search) node(depth int) verdict {
	if find.count == 0 {
		return yes
	}
	for i := range find.prices {
		if find.prices[i].slack < 0 {
			return no
		}
	}
	if find.cut = find.cut || find.nodes <= 0 || find.ctx.Err() != nil; find.cut {
		return stopped
	}
	find.nodes--
	key := find.state()
	if _, known := find.failed[string(key)]; known {
		return no
	}
	kept := string(key)
	for len(find.levels) <= depth {
		find.levels = append(find.levels, &level{})
	}
	lv := find.levels[depth]
	lv.reach.build(find.it.size, find.rem, find.caps[0])
	first := slices.IndexFunc(find.rem, func(count int) bool { return count > 0 })
	lv.begin, lv.asked = find.nodes, false
	known := len(find.prices)
	defer func() { find.prices = find.prices[:known] }()
	for group, count := range find.left {
		if count == 0 || find.caps[group] < find.it.size[first] {
			continue
		}
		if answer := find.branch(depth, group, first); answer != no {
			return answer
		}
	}
	if find.failedSize+len(kept) < failedBytes {
		find.failed[kept] = struct{}{}
		find.failedSize += len(kept) + 48
	}
	return no
}

// branch fills one device of group with the largest item left and every set
// that may go with it, fullest first.
func (find *search) branch(depth, group, first int) verdict {
	f := &find.levels[depth].fill
	f.start(find, &find.levels[depth].reach, group, first)
	for {
		sets, more := f.next()
		if find.cut {
			return stopped
		}
		slices.SortStableFunc(sets, func(a, b set) int { return cmp.Compare(a.waste, b.waste) })
		for _, c := range sets {
			find.apply(group, c.items, 1)
			find.chosen = append(find.chosen, filled{group, c.items})
			if answer := find.node(depth + 1); answer != no {
				return answer
			}
			find.chosen = find.chosen[:len(find.chosen)-1]
			find.apply(group, c.items, -1)
			if find.askAgain(find.levels[depth]) {
				return no
			}
		}
		if !more {
			return no
		}
	}
}

// apply takes items out for a device of group g (sign 1), or back (−1).
func (find *search) apply(group int, items []taken, sign int) {
	find.left[group] -= sign
	for i := range find.prices {
		find.prices[i].slack -= int64(sign) * find.prices[i].most[group]
	}
	for _, take := range items {
		find.rem[take.kind] -= sign * take.count
		find.count -= sign * take.count
		for i := range find.prices {
			find.prices[i].slack += int64(sign*take.count) * find.prices[i].of[take.kind]
		}
	}
}
