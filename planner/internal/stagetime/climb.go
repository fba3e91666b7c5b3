package stagetime

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/stagememory"
)

// climb moves one cut, or several together, by an item, as long as that shortens the step.
func (search *pipeSearch) climb(ctx context.Context, cuts []int) {
	got := search.step(cuts)
	if got >= search.cutoff {
		return
	}
	take := func() { search.best, search.cutoff = slices.Clone(cuts), got*(1-1e-12) }
	take()
	stagememory.Moves(len(cuts)-1, func(lo, hi, by int) bool {
		if ctx.Err() != nil || cuts[lo]+by <= cuts[lo-1] || cuts[hi]+by >= cuts[hi+1] {
			return false
		}
		stagememory.Shift(cuts, lo, hi, by)
		if search.ok(lo-1, cuts[lo-1], cuts[lo], search.items) && search.ok(hi, cuts[hi], cuts[hi+1], search.items) && search.between(cuts, lo, hi) {
			if next := search.step(cuts); next < search.cutoff {
				got = next
				take()
				return true
			}
		}
		stagememory.Shift(cuts, lo, hi, -by)
		return false
	})
}

// between reports that the stages between two moved cuts still fit.
func (search *pipeSearch) between(cuts []int, lo, hi int) bool {
	for c := lo; c < hi; c++ {
		if !search.ok(c, cuts[c], cuts[c+1], search.items) {
			return false
		}
	}
	return true
}
