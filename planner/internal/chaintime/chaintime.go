package chaintime

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// sequential finds the shortest step of a device map, in which one device works at
// a time (naive model parallelism): with the devices in order, and where they
// differ in any order too.
type sequential struct {
	method   instance.Method // that asks, to settle an order
	in       *instance.Instance
	peaks    *instance.MapPeaks
	searches []*search
	notes    []string
	idle     []int64 // what a device without units holds
}

// maxWaits is how many ways to wait are tried ([steptime.Waits]).
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
		if idle == peaks.Overhead[device] { // no context on a device that does nothing
			idle = 0
		}
		out.idle = append(out.idle, idle)
	}
	return out, nil
}

// shortest is the map with the shortest step, of those the one with the
// smallest largest share, within the caps.
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

// byWaits finds the shortest map for one set of waits after the other, and takes
// those that it has itself next, until a bound is met or nothing is new. Nil
// where no map is within the caps, which is proved, or was found.
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

// atWaits is the map with the shortest sum at given waits, and a step that no
// map is below.
func (solver *sequential) atWaits(ctx context.Context, waits steptime.Waits, out *instance.Answer) (best *candidate, lower float64, done bool) {
	sums := newFixedPoint(ctx, solver.peaks, waits)
	if sums == nil {
		return nil, 0, false
	}
	for _, base := range solver.searches {
		state := base.waiting(sums)
		got, bound, all := state.shortest(ctx, solver.in.Caps, math.MaxInt64, false)
		// The search in any order covers those in order: the last bound holds.
		lower, done = state.secondsOf(bound), all
		if len(solver.notes) > 0 { // the bound is to hold for any order
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
