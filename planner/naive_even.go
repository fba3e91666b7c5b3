package planner

import (
	"context"
)

// even lowers the caps while a map keeps the step: it bisects over the
// largest share, by every order.
func (t *naive) even(ctx context.Context, best *shortMap, caps []int64, out *answer) *shortMap {
	c := t.searches[0].paceOf(places(best.m))
	sums := newNaiveStep(t.l, t.pins, c)
	step := best.step
	keep := func(under []int64, first bool) *shortMap {
		var kept *shortMap
		for _, base := range t.searches {
			s := base.at(sums)
			cutoff := int64(step*sums.scale*(1+1e-12)) + sums.rounded()
			got, _, done := s.shortest(ctx, under, cutoff, first)
			out.tried += s.tried
			out.even = out.even && done
			if got == nil {
				continue
			}
			f := t.scored(s, got)
			switch {
			case f.step > step && !same(f.step, step):
				out.even = false // another clock binds it
			case first:
				return f
			case f.better(kept):
				kept = f
			}
		}
		return kept
	}
	for lo, hi := 0., best.share; hi-lo > tolerance*hi && ctx.Err() == nil; {
		mid := lo + (hi-lo)/2
		if f := keep(t.l.p.capsBelow(mid, caps), true); f != nil {
			best, hi = f, f.share
		} else {
			lo = mid
		}
	}
	if f := keep(t.under(best.share, caps), false); f != nil && f.better(best) {
		best = f
	}
	out.even = out.even && ctx.Err() == nil
	return best
}

// under are the caps that also keep every share up to s.
func (t *naive) under(s float64, caps []int64) []int64 {
	out := t.l.p.caps(s)
	for d := range out {
		out[d] = min(out[d], caps[d])
	}
	return out
}
