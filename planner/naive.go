package planner

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// naive finds the shortest step of a device map, in which one device works at
// a time (naive model parallelism): with the devices in order, and where they
// differ in any order too.
type naive struct {
	l        *layout
	pins     *pins
	searches []*naiveSearch
	notes    []string
	idle     []int64 // what a device without units holds
}

// mostPaces is how many paces are tried ([pace]).
const mostPaces = 8

func newNaive(l *layout, fixed *pins) (*naive, error) {
	t := newNaiveStep(l, fixed, pace{})
	ordered := newNaiveSearch(t, true)
	if ordered == nil {
		return nil, fmt.Errorf("planner: no order of %d devices was made", t.devices)
	}
	out := &naive{l: l, pins: fixed, searches: []*naiveSearch{ordered}}
	if !equal(l.p.Topology) && t.devices > 1 {
		if free := newNaiveSearch(t, false); free != nil {
			out.searches = append(out.searches, free)
		} else {
			out.notes = append(out.notes, fmt.Sprintf("the %d devices differ in more ways than can be tried in every order: the map keeps the devices in order", t.devices))
		}
	}
	for d := range l.p.Topology.Devices {
		idle := l.idle[d]
		if idle == l.extra[d] { // no context on a device that does nothing
			idle = 0
		}
		out.idle = append(out.idle, idle)
	}
	return out, nil
}

// shortest implements timed.
func (t *naive) shortest(ctx context.Context, caps []int64) (*answer, error) {
	out := &answer{notes: t.notes, bound: "search", even: true}
	for d, idle := range t.idle {
		if idle > caps[d] {
			out.proved = true
			return out, errNone
		}
	}
	best := t.paces(ctx, caps, out)
	if best == nil {
		out.proved = out.proved && len(t.notes) == 0
		return out, errNone
	}
	best = t.even(ctx, best, caps, out)
	out.m = best.m
	out.step = t.searches[0].sumOf(places(best.m))
	out.even = out.even && out.proved
	if !out.proved {
		out.bound = "one clock at a time"
	}
	if len(t.notes) > 0 && !out.proved {
		out.settle(ctx, t.l.p, caps)
	}
	return out, nil
}

// paces finds the shortest map for one pace after the other, and takes the
// pace that it has itself next, until a bound is met or nothing is new. Nil
// where no map is within the caps, which is proved, or was found.
func (t *naive) paces(ctx context.Context, caps []int64, out *answer) (best *shortMap) {
	var tried []pace
	for next := (pace{}); len(tried) < mostPaces && !slices.Contains(tried, next); {
		tried = append(tried, next)
		got, lower, done := t.atPace(ctx, next, caps, out)
		out.lower, out.stopped = max(out.lower, lower), out.stopped || ctx.Err() != nil
		if got == nil {
			out.proved = best == nil && done
			return best
		}
		if best == nil || got.step < best.step {
			best = got
		}
		if out.proved = best.step*(1-tolerance) <= out.lower; out.proved || ctx.Err() != nil {
			return best
		}
		next = t.searches[0].paceOf(places(got.m))
	}
	return best
}

// atPace is the map with the shortest sum of a pace, and a step that no map
// is below.
func (t *naive) atPace(ctx context.Context, c pace, caps []int64, out *answer) (best *shortMap, lower float64, done bool) {
	sums := newNaiveStep(t.l, t.pins, c)
	for _, base := range t.searches {
		s := base.at(sums)
		got, bound, all := s.shortest(ctx, caps, math.MaxInt64, false)
		// The search in any order covers those in order: the last bound holds.
		lower, done = s.secondsOf(bound), all
		if len(t.notes) > 0 { // the bound is to hold for any order
			lower = s.secondsOf(s.anywhere())
		}
		out.tried += s.tried
		if got == nil {
			continue
		}
		if f := t.scored(s, got); f.better(best) {
			best = f
		}
	}
	return best, lower, done
}
