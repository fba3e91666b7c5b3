package stagetime

import (
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/stagememory"
)

// looped finds cuts of an interleaved pipeline. It tries all cuts if there are few. Otherwise it
// starts from the most balanced cuts in memory, and from cuts balanced in time, and moves them as
// long as that shortens the step.
func (pipeline *pipes) looped(ctx context.Context, caps []int64, limits instance.Limits) (*instance.Answer, error) {
	if len(pipeline.in.Pins) > 0 {
		return nil, stagememory.RefusePins(pipeline.in)
	}
	out := instance.NoStep(pipeline.notes, "work")
	out.LowerBound = pipeline.anyOrder()
	step, share := math.Inf(1), math.Inf(1)
	exact := !pipeline.partly
	for i := range pipeline.orders {
		if ctx.Err() != nil {
			break
		}
		order := &pipeline.orders[i]
		if !order.ring() {
			continue
		}
		loop := stagememory.NewLooped(order.peaks)
		loop.Quick = limits.Quick
		try := func() bool {
			out.Tried++
			if !order.withinUntil(ctx, loop.Cuts, caps) {
				return false
			}
			got := order.looped(loop.Cuts)
			have := order.share(loop.Cuts)
			if got > step*(1+1e-12) || got >= step*(1-1e-12) && have >= share {
				return false
			}
			step, share, out.Map = got, have, instance.Restored(order.unitMap(loop.Cuts), order.order)
			return true
		}
		promising := func() bool { return limits.Step == 0 || step < limits.Step*(1+near) }
		exact = shorten(ctx, loop, order.costs, try, promising) && exact
	}
	out.Stopped = ctx.Err() != nil
	out.Proved = exact && !out.Stopped && len(pipeline.notes) == 0
	if out.Map == nil {
		return out, instance.ErrNone
	}
	out.Value, out.EvenProved = step, out.Proved
	if out.Proved { // all cuts were simulated
		out.LowerBound, out.Bound = step, "search"
	} else {
		out.Proved = step*(1-instance.Tolerance) <= out.LowerBound
	}
	return out, nil
}

// withinUntil is within, but false once the context has ended, as the check takes long.
func (order *pipeOrder) withinUntil(ctx context.Context, cuts []int, caps []int64) bool {
	return ctx.Err() == nil && order.within(cuts, caps) && ctx.Err() == nil
}

// looped returns the step of interleaved runs.
func (order *pipeOrder) looped(cuts []int) float64 {
	placement := order.unitMap(cuts)
	if order.costs.ticks != nil {
		return order.costs.planned(placement)
	}
	return *devicemap.StepSeconds(order.in.Timed(), order.in.Topology, placement)
}

// A start whose step is longer by this part than one of another form is not moved. quickMoves is
// the number of runs in moved cuts after which a quick search ends.
const (
	near       = .05
	quickMoves = 20_000
)

// shorten tries cuts; it returns true if it tried all.
func shorten(ctx context.Context, loop *stagememory.Looped, costs *pipeCosts, try, promising func() bool) bool {
	starts := []func() bool{
		func() bool { evenTime(loop, costs); return true }, loop.EvenBlocks,
		func() bool { loop.Even(); return loop.Level(ctx) },
	}
	if loop.Quick { // only the best of them is moved
		var best []int
		for _, start := range starts {
			if start() && try() {
				best = slices.Clone(loop.Cuts)
			}
		}
		if best == nil || !promising() {
			return false
		}
		starts = []func() bool{func() bool { copy(loop.Cuts, best); return true }}
	}
	if loop.Few() {
		loop.Each(ctx, 1, func() { try() })
		return ctx.Err() == nil
	}
	moved := 0
	for _, start := range starts {
		if ctx.Err() == nil && start() {
			try()
			moves(ctx, loop, &moved, try)
		}
	}
	return false
}

// moves moves cuts as long as one of them helps, and counts the runs in moved cuts.
func moves(ctx context.Context, loop *stagememory.Looped, moved *int, try func() bool) {
	stagememory.Moves(len(loop.Cuts)-1, func(lo, hi, by int) bool {
		if ctx.Err() != nil || loop.Quick && *moved >= quickMoves || !loop.Move(lo, hi, by) {
			return false
		}
		*moved += len(loop.Cuts)
		if try() {
			return true
		}
		stagememory.Shift(loop.Cuts, lo, hi, -by)
		return false
	})
}

// evenTime sets cuts with about the same time per run.
func evenTime(loop *stagememory.Looped, costs *pipeCosts) {
	items, k := loop.Count(), len(loop.Cuts)-1
	at := make([]float64, items+1)
	for i := range at {
		at[i] = costs.forward[0][i] + costs.backward[0][i]
	}
	for run := 1; run < k; run++ {
		part := float64(run) / float64(k)
		if costs.schedule.Kind.Vee() { // the middle run is two stages
			part = (float64(run) + float64(2*run/(k+1))) / float64(k+1)
		}
		cut, _ := slices.BinarySearch(at, at[items]*part)
		loop.Cuts[run] = min(max(cut, loop.Cuts[run-1]+1), items-(k-run))
	}
	loop.Cuts[k] = items
}
