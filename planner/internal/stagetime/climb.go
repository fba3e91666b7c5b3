package stagetime

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/stagememory"
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
	stagememory.Moves(len(cuts)-1, func(lo, hi, by int) bool {
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

func shift(cuts []int, lo, hi, by int) {
	for c := lo; c <= hi; c++ {
		cuts[c] += by
	}
}
