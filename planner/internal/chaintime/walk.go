package chaintime

import (
	"context"
)

// reached is the best way to have a stop's device end before an item.
type reached struct {
	cost
	from, stop int32 // the run's first item, and the stop before; stop -1: not reached
}

// walk finds the cheapest path whose updates take no longer than slowest:
//
//	best[stop][b] = min over stops before and a in [lo(b), b) of
//	                best[before][under] + crossing(a) + sums[b] − sums[under]
//
// As lo never falls, the minimum over a window of a is that of a queue. Nil
// where there is none, and where the context ends.
func (p *path) walk(ctx context.Context, slowest int64) *placed {
	for d, held := range p.held {
		if p.base[d] != 0 && held > slowest {
			return nil
		}
	}
	best := make([][]reached, len(p.stops))
	end, last := reached{stop: -1}, -1
	for s := range p.stops {
		if ctx.Err() != nil {
			return nil
		}
		best[s] = make([]reached, p.items+1)
		for b := range best[s] {
			best[s][b].stop = -1
		}
		if s == 0 {
			best[0][0].stop = 0
		} else {
			p.step(best, s, slowest)
		}
		if r := best[s][p.items]; r.stop >= 0 && (last < 0 || r.less(end.cost)) {
			end, last = r, s
		}
	}
	if last < 0 {
		return nil
	}
	return p.trace(best, last)
}

// step fills a stop's row.
func (p *path) step(best [][]reached, s int, slowest int64) {
	d := p.stops[s].device
	sums, lo, grown := p.sums[d], p.lo[d], p.grown[d]
	enter := p.enter(best, s)
	queue := make([]int, 0, p.items) // columns, each better than those behind it
	head, next, first := 0, 0, 0
	better := func(a, b int) bool {
		return !enter[b].minus(sums[b]).less(enter[a].minus(sums[a]))
	}
	for b := 1; b <= p.items; b++ {
		for ; next < b; next++ {
			if enter[next].stop < 0 {
				continue
			}
			for len(queue) > head && better(next, queue[len(queue)-1]) {
				queue = queue[:len(queue)-1]
			}
			queue = append(queue, next)
		}
		for first < b && p.held[d]+grown[b]-grown[first] > slowest {
			first++
		}
		for head < len(queue) && queue[head] < max(first, lo[b]) {
			head++
		}
		if head < len(queue) {
			a := queue[head]
			best[s][b] = reached{enter[a].plus(sums[b]).minus(sums[a]), int32(a), enter[a].stop}
		}
	}
}

// enter is the best way for the stop's device to begin at each item.
func (p *path) enter(best [][]reached, s int) []reached {
	d := p.stops[s].device
	out := make([]reached, p.items)
	for a := range out {
		out[a].stop = -1
	}
	for _, before := range p.stops[s].before {
		from := p.stops[before].device
		for a := range out {
			r := &best[before][a]
			if r.stop < 0 {
				continue
			}
			c := r.cost
			if from >= 0 {
				x, ok := p.cut(from, d, a)
				if !ok {
					continue
				}
				c = c.plus(x)
			}
			if out[a].stop < 0 || c.less(out[a].cost) {
				out[a] = reached{c, 0, int32(before)}
			}
		}
	}
	return out
}

// cut is what passes at a cut before an item.
func (p *path) cut(from, to, item int) (cost, bool) {
	at := p.peaks.Start[item]
	if at == 0 || p.peaks.Order[at-1]+1 != p.peaks.Order[at] {
		return cost{}, true // a group's unit is between: counted there
	}
	return p.crossing(from, to, p.peaks.Order[at-1])
}

// trace walks back from the last stop.
func (p *path) trace(best [][]reached, s int) *placed {
	out := &placed{items: make([]int, p.items), groups: p.groups, cost: best[s][p.items].plus(p.fixed)}
	load := append([]int64(nil), p.held...)
	later := -1
	for b := p.items; s > 0; {
		r, d := best[s][b], p.stops[s].device
		for i := int(r.from); i < b; i++ {
			out.items[i] = d
		}
		load[d] += p.grown[d][b] - p.grown[d][r.from]
		if later >= 0 && later < d {
			out.order++
		}
		later = d
		b, s = int(r.from), int(r.stop)
	}
	for _, l := range load {
		out.update = max(out.update, l)
	}
	out.cost.time += out.update
	return out
}
