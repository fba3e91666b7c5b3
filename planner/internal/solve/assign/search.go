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
	it     *items
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
type taken struct{ kind, n int }

// level is what one depth of the search keeps for reuse.
type level struct {
	reach reach
	fill  filler
	begin int64 // nodes to spend when it was entered
	asked bool  // the linear program, since
}

// run answers for what is left.
func (s *search) run() verdict { return s.node(0) }

func (s *search) node(depth int) verdict {
	if s.count == 0 {
		return yes
	}
	for i := range s.prices {
		if s.prices[i].slack < 0 {
			return no
		}
	}
	if s.cut = s.cut || s.nodes <= 0 || s.ctx.Err() != nil; s.cut {
		return stopped
	}
	s.nodes--
	key := s.state()
	if _, known := s.failed[string(key)]; known {
		return no
	}
	kept := string(key)
	for len(s.levels) <= depth {
		s.levels = append(s.levels, &level{})
	}
	lv := s.levels[depth]
	lv.reach.build(s.it.size, s.rem, s.caps[0])
	first := slices.IndexFunc(s.rem, func(n int) bool { return n > 0 })
	lv.begin, lv.asked = s.nodes, false
	known := len(s.prices)
	defer func() { s.prices = s.prices[:known] }()
	for g, n := range s.left {
		if n == 0 || s.caps[g] < s.it.size[first] {
			continue
		}
		if v := s.branch(depth, g, first); v != no {
			return v
		}
	}
	if s.failedSize+len(kept) < failedBytes {
		s.failed[kept] = struct{}{}
		s.failedSize += len(kept) + 48
	}
	return no
}

// branch fills one device of group g with the largest item left and every set
// that may go with it, fullest first.
func (s *search) branch(depth, g, first int) verdict {
	f := &s.levels[depth].fill
	f.start(s, &s.levels[depth].reach, g, first)
	for {
		sets, more := f.next()
		if s.cut {
			return stopped
		}
		slices.SortStableFunc(sets, func(a, b set) int { return cmp.Compare(a.waste, b.waste) })
		for _, c := range sets {
			s.apply(g, c.items, 1)
			s.chosen = append(s.chosen, filled{g, c.items})
			if v := s.node(depth + 1); v != no {
				return v
			}
			s.chosen = s.chosen[:len(s.chosen)-1]
			s.apply(g, c.items, -1)
			if s.askAgain(s.levels[depth]) {
				return no
			}
		}
		if !more {
			return no
		}
	}
}

// apply takes items out for a device of group g (sign 1), or back (−1).
func (s *search) apply(g int, items []taken, sign int) {
	s.left[g] -= sign
	for i := range s.prices {
		s.prices[i].slack -= int64(sign) * s.prices[i].most[g]
	}
	for _, t := range items {
		s.rem[t.kind] -= sign * t.n
		s.count -= sign * t.n
		for i := range s.prices {
			s.prices[i].slack += int64(sign*t.n) * s.prices[i].of[t.kind]
		}
	}
}
