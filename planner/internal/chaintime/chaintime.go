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
	in       *instance.Instance
	peaks    *instance.MapPeaks
	searches []*search
	notes    []string
	idle     []int64 // what a device without units holds
}

// maxWaits is how many ways to wait are tried ([steptime.Waits]).
const maxWaits = 8

func newSequential(in *instance.Instance) (*sequential, error) {
	items, err := in.Items()
	if err != nil {
		return nil, err
	}
	peaks := instance.NewMapPeaks(items)
	t := newFixedPoint(peaks, steptime.Waits{})
	ordered := newSearch(t, true)
	if ordered == nil {
		return nil, fmt.Errorf("planner: no order of %d devices was made", t.devices)
	}
	out := &sequential{in: in, peaks: peaks, searches: []*search{ordered}}
	if !in.Uniform() && t.devices > 1 {
		if free := newSearch(t, false); free != nil {
			out.searches = append(out.searches, free)
		} else {
			out.notes = append(out.notes, fmt.Sprintf("the %d devices differ in more ways than can be tried in every order: the map keeps the devices in order", t.devices))
		}
	}
	for d := range in.Topology.Devices {
		idle := peaks.Idle[d]
		if idle == peaks.Overhead[d] { // no context on a device that does nothing
			idle = 0
		}
		out.idle = append(out.idle, idle)
	}
	return out, nil
}

// shortest is the map with the shortest step, of those the one with the
// smallest largest share, within the caps.
func (t *sequential) shortest(ctx context.Context) (*instance.Answer, error) {
	out := newAnswer(t.notes, "search")
	out.EvenProved = true
	for d, idle := range t.idle {
		if idle > t.in.Caps[d] {
			out.Proved = true
			return out, instance.ErrNone
		}
	}
	best := t.byWaits(ctx, out)
	if best == nil {
		out.Proved = out.Proved && len(t.notes) == 0
		return out, instance.ErrNone
	}
	best = t.even(ctx, best, out)
	out.Map = best.m
	out.Value = t.searches[0].sumOf(best.m)
	out.EvenProved = out.EvenProved && out.Proved
	if !out.Proved {
		out.Bound = "one clock at a time"
	}
	if len(t.notes) > 0 && !out.Proved {
		out.Settle(ctx, t.in, Method{})
	}
	return out, nil
}

// byWaits finds the shortest map for one set of waits after the other, and takes
// those that it has itself next, until a bound is met or nothing is new. Nil
// where no map is within the caps, which is proved, or was found.
func (t *sequential) byWaits(ctx context.Context, out *instance.Answer) (best *candidate) {
	var tried []steptime.Waits
	for next := (steptime.Waits{}); len(tried) < maxWaits && !slices.Contains(tried, next); {
		tried = append(tried, next)
		got, lower, done := t.atWaits(ctx, next, out)
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
		next = t.searches[0].WaitsOf(got.m)
	}
	return best
}

// atWaits is the map with the shortest sum at given waits, and a step that no
// map is below.
func (t *sequential) atWaits(ctx context.Context, waits steptime.Waits, out *instance.Answer) (best *candidate, lower float64, done bool) {
	sums := newFixedPoint(t.peaks, waits)
	for _, base := range t.searches {
		s := base.waiting(sums)
		got, bound, all := s.shortest(ctx, t.in.Caps, math.MaxInt64, false)
		// The search in any order covers those in order: the last bound holds.
		lower, done = s.secondsOf(bound), all
		if len(t.notes) > 0 { // the bound is to hold for any order
			lower = s.secondsOf(s.anywhere())
		}
		out.Tried += s.tried
		if got == nil {
			continue
		}
		if f := t.scored(s, got); f.better(best) {
			best = f
		}
	}
	return best, lower, done
}
