package planner

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

// turns solves device maps: devices in order, and where they differ in any
// order too.
type turns struct {
	l        *layout
	pins     *pins
	searches []*turnSearch
	notes    []string
	idle     []int64 // what a device without units holds
}

// mostPaces is how many paces are tried ([pace]).
const mostPaces = 8

func newTurns(l *layout, fixed *pins) (*turns, error) {
	t := newTurn(l, fixed, pace{})
	ordered := newTurnSearch(t, true)
	if ordered == nil {
		return nil, fmt.Errorf("planner: no order of %d devices was made", t.devices)
	}
	out := &turns{l: l, pins: fixed, searches: []*turnSearch{ordered}}
	if !equal(l.p.Topology) && t.devices > 1 {
		if free := newTurnSearch(t, false); free != nil {
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

// shortMap is a map with its figures, and the search that it came from.
type shortMap struct {
	*placed
	m           devicemap.Map
	step, share float64
	by          *turnSearch
}

// better compares as the objective does: the step, the largest share, what
// crosses, and then devices in order.
func (a *shortMap) better(b *shortMap) bool {
	switch {
	case b == nil:
		return true
	case !same(a.step, b.step):
		return a.step < b.step
	case math.Abs(a.share-b.share) > tolerance:
		return a.share < b.share
	}
	return a.simpler(b.placed)
}

// same reports equal times, but for the rounding of sums.
func same(a, b float64) bool { return math.Abs(a-b) <= 1e-12*max(a, b) }

// shortest implements timed.
func (t *turns) shortest(ctx context.Context, caps []int64) (*answer, error) {
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
func (t *turns) paces(ctx context.Context, caps []int64, out *answer) (best *shortMap) {
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
func (t *turns) atPace(ctx context.Context, c pace, caps []int64, out *answer) (best *shortMap, lower float64, done bool) {
	sums := newTurn(t.l, t.pins, c)
	for _, base := range t.searches {
		s := base.at(sums)
		got, bound, all := s.shortest(ctx, caps, math.MaxInt64, false)
		// The search in any order covers those in order: the last bound holds.
		lower, done = float64(bound)/s.scale*(1-1e-12), all
		if len(t.notes) > 0 { // the bound is to hold for any order
			lower = float64(s.anywhere()) / s.scale * (1 - 1e-12)
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

func (t *turns) scored(s *turnSearch, m *placed) *shortMap {
	f := &shortMap{placed: m, m: s.unitMap(m), share: t.share(s.turn, m), by: s}
	f.step = *devicemap.StepSeconds(t.l.p.Costs, t.l.p.Topology, f.m)
	return f
}

// even lowers the caps while a map keeps the step: it bisects over the
// largest share, by every order.
func (t *turns) even(ctx context.Context, best *shortMap, caps []int64, out *answer) *shortMap {
	c := t.searches[0].paceOf(places(best.m))
	sums := newTurn(t.l, t.pins, c)
	step := best.step
	keep := func(under []int64, first bool) *shortMap {
		var kept *shortMap
		for _, base := range t.searches {
			s := base.at(sums)
			cutoff := int64(step*sums.scale*(1+1e-12)) + 1
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
func (t *turns) under(s float64, caps []int64) []int64 {
	out := t.l.p.caps(s)
	for d := range out {
		out[d] = min(out[d], caps[d])
	}
	return out
}

func places(m devicemap.Map) []int {
	out := make([]int, len(m))
	for u, d := range m {
		out[u] = int(d)
	}
	return out
}

// share is the largest of a map.
func (t *turns) share(s *turn, m *placed) float64 {
	out := 0.
	first, end, held := make([]int, s.devices), make([]int, s.devices), make([]uint64, s.devices)
	for i, d := range m.items {
		if end[d] == 0 {
			first[d] = i
		}
		end[d] = i + 1
	}
	for g, d := range m.groups {
		held[d] |= 1 << g
	}
	for d := range first {
		need := t.idle[d]
		if end[d] > 0 || held[d] != 0 {
			need = s.l.peak(d, first[d], end[d], held[d])
		}
		out = max(out, float64(need)/float64(t.l.p.Topology.Devices[d].Budget()))
	}
	return out
}
