package partition

import (
	"context"
	"math"
)

// exact tries every assignment of a small problem, item by item, and turns
// back where a device is already as busy as the best answer's, or all must be
// on average. Loads only grow as items are added.
type exact struct {
	*netlist
	kind   []int
	order  []int32
	prices prices
	// rest is the work, at the prices, of the items from a step on.
	rest []float64
	// paid is what all capacity costs.
	paid float64

	place       []int32 // −1: not yet placed
	held        []int32 // as in placement, of the items placed
	placed      []int32 // members placed, of each wire
	load, bytes []float64
	items       []int // on each device
	best        []int32
	bestLoad    float64
	left, calls int // steps that may still be made, and those made
}

// exactSteps are what the search may take: a fraction of a second.
const exactSteps = 1_500_000

// exact improves the best answer or proves it, if the problem is small.
func (s *anywhere) exact(ctx context.Context, p prices) {
	devices := 0
	for _, n := range s.count {
		devices += n
	}
	e := &exact{
		netlist: s.netlist, kind: s.kindOf(), prices: p, left: exactSteps, bestLoad: s.sol.Largest,
		place: make([]int32, len(s.nodes)), held: make([]int32, len(s.wires)*devices), placed: make([]int32, len(s.wires)),
		load: make([]float64, devices), bytes: make([]float64, devices), items: make([]int, devices),
		rest: make([]float64, len(s.nodes)+1),
	}
	used := make([]bool, len(s.wires))
	for w := range used {
		used[w] = true
	}
	if e.order = s.thinOrder(ctx, used); e.order == nil {
		return
	}
	for i := len(e.order) - 1; i >= 0; i-- {
		e.rest[i] = e.rest[i+1] + p.work[e.order[i]]
	}
	for k := range s.p.Kinds {
		e.paid += p.space(&s.p.Kinds[k], k) * float64(s.p.Kinds[k].Count)
	}
	e.search(ctx, 0)
	if e.best != nil {
		s.take(e.best, e.bestLoad, "search: the problem is small enough to try every assignment")
	}
	if e.left > 0 && s.best != nil {
		s.raise(e.bestLoad, "search: every smaller load was refuted")
	}
	s.none = e.left > 0 && s.best == nil
}

// search places the items from a step on.
func (e *exact) search(ctx context.Context, step int) {
	e.left -= max(1, len(e.load)*len(e.load)/64) // loads are copied for each device
	e.calls++
	if e.left <= 0 || (e.calls%1024 == 0 && ctx.Err() != nil) {
		e.left = 0
		return
	}
	if step == len(e.order) {
		e.bestLoad = 0
		for _, l := range e.load {
			e.bestLoad = max(e.bestLoad, l)
		}
		e.best = append(e.best[:0], e.place...)
		return
	}
	v := e.order[step]
	fresh := -1 // the kind whose first empty device was tried: the others are like it
	for d := range e.load {
		k := e.kind[d]
		if e.items[d] == 0 && fresh == k {
			continue
		}
		if e.items[d] == 0 {
			fresh = k
		}
		if math.IsInf(e.time[k][v], 1) || e.bytes[d]+e.size[v] > e.capacity[k] {
			continue
		}
		before := append([]float64(nil), e.load...)
		e.put(v, d)
		if e.hopeful(step + 1) {
			e.search(ctx, step+1)
		}
		e.takeBack(v, d)
		copy(e.load, before)
		if e.left <= 0 {
			return
		}
	}
}

// hopeful tells whether the best answer may still be beaten.
func (e *exact) hopeful(step int) bool {
	limit := e.bestLoad * (1 - rounding)
	work := e.rest[step]
	for d, l := range e.load {
		if l >= limit {
			return false
		}
		k := e.kind[d]
		work += e.prices.rent[k] * e.bytes[d]
		if per := e.prices.per[k]; l > 0 && !math.IsInf(per, 1) {
			work += per * l
		}
	}
	return work*(1-rounding) < limit+e.paid
}
