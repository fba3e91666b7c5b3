package chaintime

import (
	"context"
)

// reached is the cheapest way for a stop's device to end before an item.
type reached struct {
	cost
	from, stop int32 // the run's first item, and the stop before; stop -1: not reached
}

// walk returns the cheapest path whose updates take no longer than slowest. It returns nil if there
// is none, or if the context ends.
//
//	best[stop][b] = min over stops before and a in [lo(b), b) of
//	                best[before][under] + crossing(a) + sums[b] − sums[under]
//
// As lo never falls, a queue gives the minimum over a window of a.
func (path *pathSearch) walk(ctx context.Context, slowest int64) *placedMap {
	for device, update := range path.groupUpdates {
		if path.base[device] != 0 && update > slowest {
			return nil
		}
	}
	best := make([][]reached, len(path.stops))
	end, last := reached{stop: -1}, -1
	for stop := range path.stops {
		if ctx.Err() != nil {
			return nil
		}
		best[stop] = make([]reached, path.items+1)
		for b := range best[stop] {
			best[stop][b].stop = -1
		}
		if stop == 0 {
			best[0][0].stop = 0
		} else {
			path.step(best, stop, slowest)
		}
		if reach := best[stop][path.items]; reach.stop >= 0 && (last < 0 || reach.less(end.cost)) {
			end, last = reach, stop
		}
	}
	if last < 0 {
		return nil
	}
	return path.trace(best, last)
}

// step fills a stop's row.
func (path *pathSearch) step(best [][]reached, stop int, slowest int64) {
	device := path.stops[stop].device
	sums, lo, grown := path.sums[device], path.lo[device], path.grown[device]
	enter := path.enter(best, stop)
	queue := make([]int, 0, path.items) // items, each better than the later ones
	head, next, first := 0, 0, 0
	better := func(a, b int) bool {
		return !enter[b].minus(sums[b]).less(enter[a].minus(sums[a]))
	}
	for b := 1; b <= path.items; b++ {
		for ; next < b; next++ {
			if enter[next].stop < 0 {
				continue
			}
			for len(queue) > head && better(next, queue[len(queue)-1]) {
				queue = queue[:len(queue)-1]
			}
			queue = append(queue, next)
		}
		for first < b && path.groupUpdates[device]+grown[b]-grown[first] > slowest {
			first++
		}
		for head < len(queue) && queue[head] < max(first, lo[b]) {
			head++
		}
		if head == len(queue) {
			continue
		}
		a := queue[head]
		if !path.fits(device, a, b) {
			a = path.scan(enter, device, max(first, lo[b]), b)
		}
		if a >= 0 {
			best[stop][b] = reached{enter[a].plus(sums[b]).minus(sums[a]), int32(a), enter[a].stop}
		}
	}
}

// scan returns the best item from a on from which a run that ends before b fits; -1: none. It runs
// if the best item of all does not fit.
func (path *pathSearch) scan(enter []reached, device, a, b int) int {
	sums, best := path.sums[device], -1
	for ; a < b; a++ {
		if enter[a].stop >= 0 && (best < 0 || enter[a].minus(sums[a]).less(enter[best].minus(sums[best]))) && path.fits(device, a, b) {
			best = a
		}
	}
	return best
}

// enter returns the cheapest way for the stop's device to begin at each item.
func (path *pathSearch) enter(best [][]reached, stop int) []reached {
	device := path.stops[stop].device
	out := make([]reached, path.items)
	for a := range out {
		out[a].stop = -1
	}
	for _, before := range path.stops[stop].before {
		from := path.stops[before].device
		for a := range out {
			reach := &best[before][a]
			if reach.stop < 0 {
				continue
			}
			sum := reach.cost
			if from >= 0 {
				crossing, ok := path.cut(from, device, a)
				if !ok {
					continue
				}
				sum = sum.plus(crossing)
			}
			if out[a].stop < 0 || sum.less(out[a].cost) {
				out[a] = reached{sum, 0, int32(before)}
			}
		}
	}
	return out
}

// cut returns the cost of a cut before an item.
func (path *pathSearch) cut(from, to, item int) (cost, bool) {
	at := path.peaks.Start[item]
	if at == 0 || path.peaks.Order[at-1]+1 != path.peaks.Order[at] {
		return cost{}, true // a group's unit lies between: path.sum counts it
	}
	return path.crossing(from, to, path.peaks.Order[at-1])
}

// trace follows the best path back from the last stop.
func (path *pathSearch) trace(best [][]reached, stop int) *placedMap {
	out := &placedMap{items: make([]int, path.items), groups: path.groups, cost: best[stop][path.items].plus(path.fixed)}
	load := append([]int64(nil), path.groupUpdates...)
	later := -1
	for b := path.items; stop > 0; {
		reach, device := best[stop][b], path.stops[stop].device
		for i := int(reach.from); i < b; i++ {
			out.items[i] = device
		}
		load[device] += path.grown[device][b] - path.grown[device][reach.from]
		if later >= 0 && later < device {
			out.order++
		}
		later = device
		b, stop = int(reach.from), int(reach.stop)
	}
	for _, update := range load {
		out.update = max(out.update, update)
	}
	out.cost.time += out.update
	return out
}
