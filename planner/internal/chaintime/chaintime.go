package chaintime

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// sequential finds the shortest step of a device map in which one device works at a time (naive
// model parallelism). Devices are in order; if they differ, it also tries any order.
type sequential struct {
	method   instance.Method // the method that solves again for one order
	in       *instance.Instance
	peaks    *instance.MapPeaks
	searches []*search
	notes    []string
	idle     []int64 // bytes of a device without units
}

// maxWaits is the most [steptime.Waits] tried.
const maxWaits = 8

// newSequential prepares the searches; nil if the context ends first.
func newSequential(ctx context.Context, in *instance.Instance, method instance.Method) (*sequential, error) {
	items, err := in.Items()
	if err != nil {
		return nil, err
	}
	peaks := instance.NewMapPeaks(items)
	point := newFixedPoint(ctx, peaks, steptime.Waits{})
	if point == nil {
		return nil, nil //nolint:nilnil // no search, and no fault
	}
	ordered := newSearch(point, true)
	if ordered == nil {
		return nil, fmt.Errorf("planner: no order of %d devices was made", point.devices)
	}
	out := &sequential{method: method, in: in, peaks: peaks, searches: []*search{ordered}}
	if !in.Uniform() && point.devices > 1 {
		if free := newSearch(point, false); free != nil {
			out.searches = append(out.searches, free)
		} else {
			out.notes = append(out.notes, fmt.Sprintf("the %d devices differ in more ways than can be tried in every order: the map keeps the devices in order", point.devices))
		}
	}
	for device := range in.Topology.Devices {
		idle := peaks.Idle[device]
		if idle == peaks.Overhead[device] { // no CUDA context on an idle device
			idle = 0
		}
		out.idle = append(out.idle, idle)
	}
	return out, nil
}

// shortest returns the map within the caps with the shortest step. Ties go to the smallest largest
// share.
func (solver *sequential) shortest(ctx context.Context) (*instance.Answer, error) {
	out := instance.NoStep(solver.notes, "search")
	out.EvenProved = true
	for device, idle := range solver.idle {
		if idle > solver.in.Caps[device] {
			out.Proved = true
			return out, instance.ErrNone
		}
	}
	best := solver.byWaits(ctx, out)
	if best == nil {
		out.Proved = out.Proved && len(solver.notes) == 0
		return out, instance.ErrNone
	}
	best = solver.even(ctx, best, out)
	out.Map = best.placement
	out.Value = solver.searches[0].sumOf(best.placement)
	out.EvenProved = out.EvenProved && out.Proved
	if !out.Proved {
		out.Bound = "one clock at a time"
	}
	if len(solver.notes) > 0 && !out.Proved {
		out.Settle(ctx, solver.in, solver.method)
	}
	return out, nil
}

// byWaits finds the shortest map for one set of waits after the other. Each map gives the next
// waits, until a bound is met or the waits repeat. It returns nil if it proved, or found, that no
// map is within the caps.
func (solver *sequential) byWaits(ctx context.Context, out *instance.Answer) (best *candidate) {
	var tried []steptime.Waits
	for next := (steptime.Waits{}); len(tried) < maxWaits && !slices.Contains(tried, next); {
		tried = append(tried, next)
		got, lower, done := solver.atWaits(ctx, next, out)
		out.LowerBound, out.Stopped = max(out.LowerBound, lower), out.Stopped || ctx.Err() != nil
		if got == nil {
			out.Proved = best == nil && done
			return best
		}
		if best == nil || got.step < best.step {
			best = got
		}
		if out.Proved = best.step*(1-instance.Tolerance) <= out.LowerBound; out.Proved || ctx.Err() != nil {
			return best
		}
		next = solver.searches[0].WaitsOf(got.placement)
	}
	return best
}

// atWaits returns the map with the shortest sum at given waits, and a lower bound of every map's
// step.
func (solver *sequential) atWaits(ctx context.Context, waits steptime.Waits, out *instance.Answer) (best *candidate, lower float64, done bool) {
	sums := newFixedPoint(ctx, solver.peaks, waits)
	if sums == nil {
		return nil, 0, false
	}
	for _, base := range solver.searches {
		state := base.waiting(sums)
		got, bound, all := state.shortest(ctx, solver.in.Caps, math.MaxInt64, false)
		// The search in any order includes device order, so the last bound holds.
		lower, done = state.secondsOf(bound), all
		if len(solver.notes) > 0 { // the bound must hold for any order
			lower = state.secondsOf(state.unconstrained())
		}
		out.Tried += state.tried
		if got == nil {
			continue
		}
		if scored := solver.scored(state, got); scored.better(best) {
			best = scored
		}
	}
	return best, lower, done
}
