package anyplace

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// exact tries every assignment of a small problem, item by item, and turns
// back where a device is already as busy as the best answer's, or all must be
// on average. Loads only grow as items are added.
type exact struct {
	*netlist.Netlist
	kind   []int
	order  []int32
	prices graph.Prices
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
func (s *anywhere) exact(ctx context.Context, p graph.Prices) {
	devices := 0
	for _, n := range s.Count {
		devices += n
	}
	e := &exact{
		Netlist: s.Netlist, kind: s.KindOf(), prices: p, left: exactSteps, bestLoad: s.Answer.Value,
		place: make([]int32, len(s.Nodes)), held: make([]int32, len(s.Wires)*devices), placed: make([]int32, len(s.Wires)),
		load: make([]float64, devices), bytes: make([]float64, devices), items: make([]int, devices),
		rest: make([]float64, len(s.Nodes)+1),
	}
	used := make([]bool, len(s.Wires))
	for w := range used {
		used[w] = true
	}
	if e.order = s.ThinOrder(ctx, used); e.order == nil {
		return
	}
	for i := len(e.order) - 1; i >= 0; i-- {
		e.rest[i] = e.rest[i+1] + p.Work[e.order[i]]
	}
	for k := range s.Problem.Kinds {
		e.paid += p.Space(&s.Problem.Kinds[k], k) * float64(s.Problem.Kinds[k].Count)
	}
	e.search(ctx, 0)
	if e.best != nil {
		s.take(e.best, e.bestLoad, "search: the problem is small enough to try every assignment")
	}
	if e.left > 0 && s.best != nil {
		s.Raise(e.bestLoad, "search: every smaller load was refuted")
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
		if math.IsInf(e.Time[k][v], 1) || e.bytes[d]+e.Size[v] > e.Capacity[k] {
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
	limit := e.bestLoad * (1 - graph.Rounding)
	work := e.rest[step]
	for d, l := range e.load {
		if l >= limit {
			return false
		}
		k := e.kind[d]
		work += e.prices.Rent[k] * e.bytes[d]
		if per := e.prices.PerTime[k]; l > 0 && !math.IsInf(per, 1) {
			work += per * l
		}
	}
	return work*(1-graph.Rounding) < limit+e.paid
}

// put adds v to device d: a wire that has members elsewhere costs d with its
// first member there, and costs the other device if that had all of them.
func (e *exact) put(v int32, d int) {
	devices := len(e.load)
	for _, w := range e.WiresOf[v] {
		held := e.held[int(w)*devices : int(w+1)*devices]
		if held[d] == 0 && e.placed[w] > 0 {
			e.charge(d, e.Wires[w].Cost)
			for o, n := range held {
				if n == e.placed[w] {
					e.charge(o, e.Wires[w].Cost)
				}
			}
		}
		held[d]++
		e.placed[w]++
	}
	e.load[d] += e.Time[e.kind[d]][v]
	e.bytes[d] += e.Size[v]
	e.items[d]++
	e.place[v] = int32(d)
}

func (e *exact) charge(d int, cost float64) {
	if !e.Free[e.kind[d]] {
		e.load[d] += cost
	}
}

// takeBack undoes put, but for the loads.
func (e *exact) takeBack(v int32, d int) {
	for _, w := range e.WiresOf[v] {
		e.held[int(w)*len(e.load)+d]--
		e.placed[w]--
	}
	e.bytes[d] -= e.Size[v]
	e.items[d]--
}
