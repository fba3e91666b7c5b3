package planner

import (
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Bounds of the search for the shortest step of a device map: the ways to
// place groups that are tried, the stops of an order, and the sums that one
// pass over all of them looks at.
const (
	mostGroups = 4096
	mostStops  = 1 << 14
	mostSums   = 200_000_000
)

// turnSearch is the search over groups' devices and orders of devices.
type turnSearch struct {
	*turn
	ways   []way
	order  bool // devices stand in device order
	rest   bool // some ways to place the groups are not among ways
	lowest int64
	tried  int
}

// way is the groups' devices, and the stops that go with them.
type way struct {
	groups []int
	stops  []stop
}

// newTurnSearch lists the ways; nil where there are too many for this order.
func newTurnSearch(t *turn, order bool) *turnSearch {
	s := &turnSearch{turn: t, order: order}
	s.list(nil) // which does not depend on the pace
	sums := 0
	for i := range s.ways {
		if s.ways[i].stops == nil {
			return nil
		}
		for _, stop := range s.ways[i].stops {
			sums += (2 + len(stop.before)) * t.items
		}
	}
	if sums > mostSums && !order {
		return nil
	}
	s.lowest = s.floor()
	return s
}

// at is the search with other sums.
func (s *turnSearch) at(t *turn) *turnSearch {
	out := *s
	out.turn, out.tried = t, 0
	out.lowest = out.floor()
	return &out
}

// list adds the ways that begin with the given devices. Of devices that are
// alike, the first that holds nothing yet stands for all.
func (s *turnSearch) list(groups []int) {
	if len(s.ways) >= mostGroups {
		s.rest = true
		return
	}
	p := s.l.p
	g := len(groups)
	if g == len(s.l.groups) {
		s.ways = append(s.ways, way{slices.Clone(groups), s.stopsOf(groups)})
		return
	}
	if at := s.pins.groups[g]; at >= 0 {
		s.list(append(groups, at))
		return
	}
	apart := s.apart(groups)
	if s.order {
		for d := range s.devices {
			s.list(append(groups, d))
		}
		return
	}
	for _, class := range classes(p, apart) {
		s.list(append(groups, class[0]))
	}
}

// apart are the devices that pins and groups make different from others.
func (s *turnSearch) apart(groups []int) map[int]bool {
	out := map[int]bool{}
	for _, list := range [][]int{groups, s.pins.groups, s.pins.items} {
		for _, d := range list {
			if d >= 0 {
				out[d] = true
			}
		}
	}
	return out
}

func (s *turnSearch) stopsOf(groups []int) []stop {
	if s.order {
		return inOrder(s.devices)
	}
	return anyOrder(classes(s.l.p, s.apart(groups)), mostStops)
}

// floor is an update that no map's slowest device is below: all of it shared
// out by speed, or one unit where it takes least.
func (s *turnSearch) floor() int64 {
	var rate float64
	var unit int64
	for u := range s.update[0] {
		least := int64(math.MaxInt64)
		for d := range s.update {
			least = min(least, s.update[d][u])
		}
		unit = max(unit, least)
	}
	for d := range s.update {
		var sum int64
		for _, v := range s.update[d] {
			sum += v
		}
		if sum == 0 {
			return unit // such a device takes no time for it
		}
		rate += 1 / float64(sum)
	}
	return max(unit, int64(1/rate)-1)
}

// shortest is the map with the shortest step whose peaks are within the caps
// and whose time is at most cutoff; nil where there is none. No map within
// the caps is below the bound; with first, any map within cutoff will do.
func (s *turnSearch) shortest(ctx context.Context, caps []int64, cutoff int64, first bool) (best *placed, bound int64, done bool) {
	bound, done = math.MaxInt64, true
	for i := range s.ways {
		p, ok := s.newPath(s.ways[i].stops, s.ways[i].groups)
		if !ok {
			continue
		}
		least := p.least()
		if least == math.MaxInt64 {
			continue
		}
		least += s.lowest
		if ctx.Err() != nil {
			bound, done = min(bound, least), false
			continue
		}
		if least > cutoff || !p.within(caps) {
			continue
		}
		got, low, all := s.onWay(ctx, p, least, cutoff)
		done = done && all
		bound = min(bound, low)
		if got != nil && (best == nil || got.less(best)) {
			best, cutoff = got, got.cost.time
			if first {
				return best, bound, done
			}
		}
	}
	if s.rest {
		bound, done = min(bound, s.anywhere()), false
	}
	if best != nil {
		bound = min(bound, best.cost.time)
	}
	return best, bound, done
}

func (a *placed) less(b *placed) bool {
	if a.cost != b.cost {
		return a.cost.less(b.cost)
	}
	return a.order < b.order
}

// simpler reports fewer bytes and cuts.
func (a *placed) simpler(b *placed) bool {
	x, y := a.cost, b.cost
	x.time, y.time = 0, 0
	return x.less(y)
}

// onWay finds the best map of one way. The time is a sum plus the slowest
// update: the least sum is found for ever shorter slowest updates, each just
// below the last map's, until what remains cannot be better.
func (s *turnSearch) onWay(ctx context.Context, p *path, least, cutoff int64) (best *placed, bound int64, done bool) {
	bound = math.MaxInt64
	slowest := cutoff - (least - s.lowest)
	for slowest >= s.lowest {
		if ctx.Err() != nil {
			return best, min(bound, least), false
		}
		s.tried++
		got := p.walk(slowest)
		if got == nil {
			break
		}
		sum := got.cost.time - got.update
		least = sum + s.lowest
		bound = min(bound, got.cost.time)
		if got.cost.time <= cutoff && (best == nil || got.less(best)) {
			best, cutoff = got, got.cost.time
		}
		slowest = min(got.update-1, cutoff-sum)
	}
	return best, bound, true
}

// anywhere is a time that no map at all is below.
func (s *turnSearch) anywhere() int64 {
	sum := s.lowest
	for u := range s.unit[0] {
		least := int64(math.MaxInt64)
		for d := range s.unit {
			least = min(least, s.unit[d][u])
		}
		sum += least
	}
	return sum
}

// unitMap is the map of units.
func (t *turn) unitMap(m *placed) devicemap.Map {
	out := make(devicemap.Map, len(t.l.groupOf))
	for i, d := range m.items {
		for _, u := range t.l.order[t.l.start[i]:t.l.start[i+1]] {
			out[u] = devicemap.Device(d)
		}
	}
	for g, d := range m.groups {
		for _, u := range t.l.groups[g] {
			out[u] = devicemap.Device(d)
		}
	}
	return out
}
