package planner

import (
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

// looped improves cuts of an interleaved pipeline: all of them where these
// are few, else from the most even ones in memory, and from ones of even
// time, by moving cuts while that shortens the step.
func (s *pipes) looped(ctx context.Context, caps []int64) (*answer, error) {
	out := &answer{bound: "work", notes: s.notes, lower: s.anyOrder()}
	step, share := math.Inf(1), math.Inf(1)
	exact := !s.partly
	for i := range s.orders {
		if ctx.Err() != nil {
			break
		}
		o := &s.orders[i]
		if len(s.p.Pins) > 0 {
			return nil, &PatternError{"pin", s.p.Pins[0].Pattern, "runs of an interleaved pipeline go round the devices: pins are for the other schedules"}
		}
		if !o.ring() {
			continue
		}
		loop := o.l.newLooped()
		try := func() bool {
			out.tried++
			if !o.within(loop, caps) {
				return false
			}
			got := *devicemap.StepSeconds(o.p.Costs, o.p.Topology, loop.unitMap())
			have := o.share(loop.cuts)
			if got > step*(1+1e-12) || got >= step*(1-1e-12) && have >= share {
				return false
			}
			step, share, out.m = got, have, restored(loop.unitMap(), o.order)
			return true
		}
		exact = loop.shorten(ctx, o.costs, try) && exact
	}
	out.stopped = ctx.Err() != nil
	out.proved = exact && !out.stopped && len(s.notes) == 0
	if out.m == nil {
		return out, errNone
	}
	out.step, out.even = step, out.proved
	if out.proved { // all cuts were played
		out.lower, out.bound = step, "search"
	} else {
		out.proved = step*(1-tolerance) <= out.lower
	}
	return out, nil
}

// shorten tries cuts; true where it tried all.
func (s *looped) shorten(ctx context.Context, costs *pipeCosts, try func() bool) bool {
	items, k := len(s.l.start)-1, len(s.cuts)-1
	if choose(items-1, k-1) <= allCuts {
		s.each(ctx, 1, func() { try() })
		return ctx.Err() == nil
	}
	climb := func() {
		try()
		moves(k, func(lo, hi, by int) bool {
			if ctx.Err() != nil || !s.move(lo, hi, by) {
				return false
			}
			if try() {
				return true
			}
			s.shift(lo, hi, -by)
			return false
		})
	}
	s.evenTime(costs)
	climb()
	s.even()
	if best, _, _ := s.search(ctx); !math.IsInf(best.most, 1) {
		climb()
	}
	return false
}

// evenTime begins with runs of about the same time.
func (s *looped) evenTime(c *pipeCosts) {
	items, k := len(s.l.start)-1, len(s.cuts)-1
	at := make([]float64, items+1)
	for i := range at {
		at[i] = c.forward[0][i] + c.backward[0][i]
	}
	for run := 1; run < k; run++ {
		cut, _ := slices.BinarySearch(at, at[items]/float64(k)*float64(run))
		s.cuts[run] = min(max(cut, s.cuts[run-1]+1), items-(k-run))
	}
	s.cuts[k] = items
}
