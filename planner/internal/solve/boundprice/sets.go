// Package boundprice bounds the largest load by prices on the items: where all
// devices together cannot take what all items are worth within a load, no
// assignment has it. The best prices solve the dual of the linear program that
// covers the items by sets that one device can take (Gilmore and Gomory,
// Operations Research 9, 1961); the dearest set at given prices is found by
// dynamic programming along a thin order of the hypergraph.
package boundprice

import (
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// SetBound prices the items so that devices cannot take them all: if n devices
// can each take a set of worth P at most within a load of T, and all items
// together are worth more than n P, no assignment has T as its largest load.
// That holds for any prices. The best of them solve the dual of the linear
// program that covers the items by sets of load T or less (Gilmore and Gomory
// 1961), found here by subgradient steps of Polyak's length.
type SetBound struct {
	*netlist.Netlist
	kinds   []int // in use
	pricers []*pricer
	fronts  [][]label
	// prices are the items', best those behind the bound, gradient is the
	// subgradient, scale what an item's price may differ by.
	prices, best, gradient, scale []float64
	Bound                         float64
	// step is a fraction of Polyak's length, lead how far above the bound the
	// steps aim, stale how many have not helped.
	step, lead float64
	stale      int
	labels     int // that one step may look at
}

// staleSteps are tried before the aim is lowered, to minLead in the end;
// refining is how many finer cells a cell becomes.
const (
	staleSteps = 20
	minLead    = 0.002
	refining   = 4
)

// New begins with each item at its least time; effort is how many labels a step
// may look at. It is nil where the context ends.
func New(ctx context.Context, nets *netlist.Netlist, effort int) *SetBound {
	bound := &SetBound{
		Netlist: nets, step: 1, lead: 0.05,
		prices: make([]float64, len(nets.Nodes)), gradient: make([]float64, len(nets.Nodes)), scale: make([]float64, len(nets.Nodes)),
	}
	for kind, count := range nets.Count {
		if count == 0 {
			continue
		}
		frontier := nets.NewFrontier(ctx, !nets.Free[kind])
		if frontier == nil {
			return nil
		}
		total := 0
		for _, state := range frontier.States {
			total += state
		}
		cells := max(300, min(2000, effort/total))
		bound.kinds = append(bound.kinds, kind)
		bound.pricers = append(bound.pricers, newPricer(frontier, nets.Time[kind], cells))
		bound.labels = max(bound.labels, total*cells)
	}
	bound.fronts = make([][]label, len(bound.kinds))
	for item := range bound.prices {
		bound.prices[item] = math.Inf(1)
		for _, kind := range bound.kinds {
			bound.prices[item] = min(bound.prices[item], nets.Time[kind][item])
		}
		bound.scale[item] = bound.prices[item]
		for _, wire := range nets.WiresOf[item] {
			bound.scale[item] += nets.Wires[wire].Cost / float64(len(nets.Wires[wire].Members))
		}
	}
	bound.best = append(bound.best, bound.prices...)
	return bound
}

// Refine makes the cells of load finer, where the work allows it.
func (bound *SetBound) Refine(effort int) {
	if bound.labels*refining > effort {
		return
	}
	for j, pricing := range bound.pricers {
		bound.pricers[j] = newPricer(pricing.Frontier, pricing.time, pricing.cells*refining)
	}
	bound.labels *= refining
}

// Steps is how many may be made for some millions of labels.
func (bound *SetBound) Steps(labels int) int {
	return max(8, min(100, labels/bound.labels))
}

// Improve makes steps until the bound reaches the limit or they are used up.
func (bound *SetBound) Improve(ctx context.Context, limit float64, steps int) {
	if limit < netlist.MinLoad {
		return
	}
	for range steps {
		if !bound.price(ctx, limit) || bound.Bound >= limit {
			return
		}
		if bound.stale > staleSteps {
			bound.stale = 0
			bound.lead = max(bound.lead/2, minLead)
			bound.step = max(bound.step*0.7, 0.05)
			copy(bound.prices, bound.best)
			if !bound.price(ctx, limit) {
				return
			}
		}
		if !bound.move(min(bound.Bound*(1+bound.lead), limit)) {
			return
		}
	}
}

// price finds what devices can take at the present prices, and the bound.
func (bound *SetBound) price(ctx context.Context, limit float64) bool {
	total, size := 0.0, 0.0
	for _, price := range bound.prices {
		total += price
		size += math.Abs(price)
	}
	for j, pricing := range bound.pricers {
		if bound.fronts[j] = pricing.price(ctx, bound.prices, limit); bound.fronts[j] == nil {
			return false
		}
	}
	bound.stale++
	if load := bound.refuted(total-graph.Rounding*size, limit); load > bound.Bound {
		if load > bound.Bound*(1+1e-4) {
			bound.stale = 0
		}
		bound.Bound = load
		copy(bound.best, bound.prices)
	}
	return true
}

// move changes the prices along the subgradient, at the aim, of what devices
// can take less what there is: up where no device's best set holds the item.
func (bound *SetBound) move(aim float64) bool {
	excess, total := 0.0, 0.0
	for item, price := range bound.prices {
		bound.gradient[item] = -1
		total += price
	}
	for j, kind := range bound.kinds {
		amount := float64(bound.Count[kind])
		last := within(bound.fronts[j], aim)
		excess += amount * bound.fronts[j][last].worth
		bound.pricers[j].set(last, bound.gradient, amount)
	}
	norm := 0.0
	for item, slope := range bound.gradient {
		norm += slope * slope * bound.scale[item] * bound.scale[item]
	}
	if norm == 0 {
		return false
	}
	length := bound.step * (max(excess-total, 0) + 0.001*total) / norm
	for item, slope := range bound.gradient {
		bound.prices[item] -= length * slope * bound.scale[item] * bound.scale[item]
	}
	return true
}

// within is the last label of a load up to the one given.
func within(front []label, load float64) int {
	i, _ := slices.BinarySearchFunc(front, load, func(at label, most float64) int {
		if at.load <= most {
			return -1
		}
		return 1
	})
	return i - 1
}

// refuted is the least load at which the devices together can take what all
// items are worth, or the limit.
func (bound *SetBound) refuted(total, limit float64) float64 {
	next := make([]int, len(bound.fronts))
	worth := 0.0
	for j, front := range bound.fronts {
		worth += float64(bound.Count[bound.kinds[j]]) * front[0].worth
	}
	load := 0.0
	for worth < total {
		pick := -1
		for j, front := range bound.fronts {
			if next[j]+1 < len(front) && (pick < 0 || front[next[j]+1].load < bound.fronts[pick][next[pick]+1].load) {
				pick = j
			}
		}
		if pick < 0 {
			return limit
		}
		here, above := bound.fronts[pick][next[pick]], bound.fronts[pick][next[pick]+1]
		worth += float64(bound.Count[bound.kinds[pick]]) * (above.worth - here.worth)
		load = above.load
		next[pick]++
	}
	return load * (1 - 1e-9)
}
