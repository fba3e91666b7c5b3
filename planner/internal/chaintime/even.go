package chaintime

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// even lowers the caps while a map keeps the step: it bisects over the
// largest share, by every order.
func (t *sequential) even(ctx context.Context, best *candidate, out *instance.Answer) *candidate {
	sums := newFixedPoint(t.peaks, t.searches[0].WaitsOf(best.m))
	step := best.step
	keep := func(under []int64, first bool) *candidate {
		var kept *candidate
		for _, base := range t.searches {
			s := base.waiting(sums)
			cutoff := int64(step*sums.scale*(1+1e-12)) + sums.rounded()
			got, _, done := s.shortest(ctx, under, cutoff, first)
			out.Tried += s.tried
			out.EvenProved = out.EvenProved && done
			if got == nil {
				continue
			}
			f := t.scored(s, got)
			switch {
			case f.step > step && !Same(f.step, step):
				out.EvenProved = false // another clock binds it
			case first:
				return f
			case f.better(kept):
				kept = f
			}
		}
		return kept
	}
	for lo, hi := 0., best.share; hi-lo > instance.Tolerance*hi && ctx.Err() == nil; {
		mid := lo + (hi-lo)/2
		if f := keep(t.in.CapsBelow(mid), true); f != nil {
			best, hi = f, f.share
		} else {
			lo = mid
		}
	}
	if f := keep(t.in.CapsUpTo(best.share), false); f != nil && f.better(best) {
		best = f
	}
	out.EvenProved = out.EvenProved && ctx.Err() == nil
	return best
}
