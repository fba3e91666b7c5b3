package planner

import (
	"context"
	"fmt"
	"math"
)

// turns solves device maps: devices in order, and where they differ in any
// order too.
type turns struct {
	p        *Problem
	searches []*turnSearch
	notes    []string
	idle     []int64 // what a device without units holds
}

func newTurns(l *layout, fixed *pins) (*turns, error) {
	t := newTurn(l, fixed)
	ordered := newTurnSearch(t, true)
	if ordered == nil {
		return nil, fmt.Errorf("planner: no order of %d devices was made", t.devices)
	}
	out := &turns{p: l.p, searches: []*turnSearch{ordered}}
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

// shortest implements timed. The two searches are compared as their maps are:
// the step, the largest share, what crosses, and then devices in order.
func (t *turns) shortest(ctx context.Context, caps []int64) (*answer, error) {
	out := &answer{notes: t.notes, bound: "search", proved: true, even: true, lower: math.Inf(1)}
	var best *placed
	var share float64
	for _, s := range t.searches {
		got := t.search(ctx, s, caps, out)
		if got == nil {
			continue
		}
		have := t.share(s.turn, got)
		if best == nil || alsoTicks(got.cost.time) < best.cost.time || got.cost.time <= alsoTicks(best.cost.time) &&
			(have < share-tolerance || have < share+tolerance && got.simpler(best)) {
			best, share = got, have
		}
		if ctx.Err() != nil {
			break
		}
	}
	out.proved = out.proved && len(t.notes) == 0
	if len(t.notes) > 0 { // the bound holds for any order
		s := t.searches[0]
		out.lower, out.bound = float64(s.anywhere())/s.scale*(1-tolerance), "fastest device"
	}
	if best == nil {
		return out, errNone
	}
	out.m = t.searches[0].unitMap(best)
	out.even = out.even && out.proved
	return out, nil
}

// search asks one search twice: for the shortest step, and for the smallest
// largest share with that step.
func (t *turns) search(ctx context.Context, s *turnSearch, caps []int64, out *answer) *placed {
	for d, idle := range t.idle {
		if idle > caps[d] {
			return nil
		}
	}
	best, bound, done := s.shortest(ctx, caps, math.MaxInt64, false)
	// The search in any order covers those in order; the last bound is its.
	out.proved = done
	out.stopped = out.stopped || ctx.Err() != nil
	out.lower = float64(bound) / s.scale * (1 - tolerance)
	if best != nil {
		var even bool
		best, even = t.even(ctx, s, best, caps)
		out.even = even
	}
	out.tried += s.tried
	return best
}

// even lowers the caps while a map keeps the step: it bisects over the
// largest share.
func (t *turns) even(ctx context.Context, s *turnSearch, best *placed, caps []int64) (*placed, bool) {
	lo, hi, cutoff := 0., t.share(s.turn, best), alsoTicks(best.cost.time)
	for hi-lo > tolerance*hi {
		if ctx.Err() != nil {
			return best, false
		}
		mid := lo + (hi-lo)/2
		got, _, _ := s.shortest(ctx, t.p.capsBelow(mid, caps), cutoff, true)
		if got == nil {
			lo = mid
			continue
		}
		best, hi = got, t.share(s.turn, got)
	}
	if got, _, done := s.shortest(ctx, t.under(hi, caps), cutoff, false); got != nil {
		return got, done
	}
	return best, false
}

// under are the caps that also keep every share up to s.
func (t *turns) under(s float64, caps []int64) []int64 {
	out := t.p.caps(s)
	for d := range out {
		out[d] = min(out[d], caps[d])
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
		out = max(out, float64(need)/float64(t.p.Topology.Devices[d].Budget()))
	}
	return out
}
