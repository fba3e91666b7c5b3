package chaintime

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// even lowers the largest share of maps with the best step. It bisects over the share, in every
// order of devices.
func (solver *sequential) even(ctx context.Context, best *candidate, out *instance.Answer) *candidate {
	sums := newFixedPoint(ctx, solver.peaks, solver.searches[0].WaitsOf(best.placement))
	if sums == nil {
		out.EvenProved = false
		return best
	}
	step := best.step
	keep := func(under []int64, first bool) *candidate {
		var found *candidate
		for _, base := range solver.searches {
			state := base.waiting(sums)
			cutoff := int64(step*sums.scale*(1+1e-12)) + sums.rounded()
			got, _, done := state.shortest(ctx, under, cutoff, first)
			out.Tried += state.tried
			out.EvenProved = out.EvenProved && done
			if got == nil {
				continue
			}
			scored := solver.scored(state, got)
			switch {
			case scored.step > step && !Same(scored.step, step):
				out.EvenProved = false // the map under other waits may be more balanced
			case first:
				return scored
			case scored.better(found):
				found = scored
			}
		}
		return found
	}
	for lo, hi := 0., best.share; hi-lo > instance.Tolerance*hi && ctx.Err() == nil; {
		mid := lo + (hi-lo)/2
		if found := keep(solver.in.CapsBelow(mid), true); found != nil {
			best, hi = found, found.share
		} else {
			lo = mid
		}
	}
	if found := keep(solver.in.CapsUpTo(best.share), false); found != nil && found.better(best) {
		best = found
	}
	out.EvenProved = out.EvenProved && ctx.Err() == nil
	return best
}
