package planner

import (
	"context"
	"slices"
)

// climb improves cuts by moving one, or several together, by an item while
// that shortens the step.
func (s *pipeSearch) climb(ctx context.Context, cuts []int) {
	got := s.step(cuts)
	if got >= s.cutoff {
		return
	}
	take := func() { s.best, s.cutoff = slices.Clone(cuts), got*(1-1e-12) }
	take()
	moves(len(cuts)-1, func(lo, hi, by int) bool {
		if ctx.Err() != nil || cuts[lo]+by <= cuts[lo-1] || cuts[hi]+by >= cuts[hi+1] {
			return false
		}
		shift(cuts, lo, hi, by)
		if s.ok(lo-1, cuts[lo-1], cuts[lo], s.items) && s.ok(hi, cuts[hi], cuts[hi+1], s.items) && s.between(cuts, lo, hi) {
			if next := s.step(cuts); next < s.cutoff {
				got = next
				take()
				return true
			}
		}
		shift(cuts, lo, hi, -by)
		return false
	})
}

// between checks the stages that a move shifted whole.
func (s *pipeSearch) between(cuts []int, lo, hi int) bool {
	for c := lo; c < hi; c++ {
		if !s.ok(c, cuts[c], cuts[c+1], s.items) {
			return false
		}
	}
	return true
}

// moves tries every stretch of cuts one item down and up, until none helps.
func moves(k int, try func(lo, hi, by int) bool) {
	for gained := true; gained; {
		gained = false
		for lo := 1; lo < k; lo++ {
			for hi := lo; hi < k; hi++ {
				for _, by := range []int{-1, 1} {
					gained = try(lo, hi, by) || gained
				}
			}
		}
	}
}

func shift(cuts []int, lo, hi, by int) {
	for c := lo; c <= hi; c++ {
		cuts[c] += by
	}
}
