package partition

import (
	"context"
	"math"
)

// setBound prices the items so that devices cannot take them all: if n devices
// can each take a set of worth P at most within a load of T, and all items
// together are worth more than n P, no assignment has T as its largest load.
// That holds for any prices. The best of them solve the dual of the linear
// program that covers the items by sets of load T or less (Gilmore and Gomory
// 1961), found here by subgradient steps of Polyak's length.
type setBound struct {
	*netlist
	kinds   []int // in use
	pricers []*pricer
	fronts  [][]label
	// y are the prices, best those behind the bound, g the subgradient, scale
	// what an item's price may differ by.
	y, best, g, scale []float64
	bound             float64
	// step is a fraction of Polyak's length, lead how far above the bound the
	// steps aim, stale how many have not helped.
	step, lead float64
	stale      int
	labels     int // that one step may look at
}

// widestStates bounds a frontier, staleSteps what is tried before the aim is
// lowered.
const (
	widestStates = 5000
	staleSteps   = 20
	leastLead    = 0.002
	refining     = 4
)

func (l *netlist) newSetBound(ctx context.Context, effort int) *setBound {
	b := &setBound{
		netlist: l, step: 1, lead: 0.05,
		y: make([]float64, len(l.nodes)), g: make([]float64, len(l.nodes)), scale: make([]float64, len(l.nodes)),
	}
	for k, n := range l.count {
		if n == 0 {
			continue
		}
		f := l.newFrontier(ctx, !l.free[k])
		if f == nil {
			return nil
		}
		total := 0
		for _, s := range f.states {
			total += s
		}
		cells := max(300, min(2000, effort/total))
		b.kinds = append(b.kinds, k)
		b.pricers = append(b.pricers, newPricer(f, l.time[k], cells))
		b.labels = max(b.labels, total*cells)
	}
	b.fronts = make([][]label, len(b.kinds))
	for v := range b.y {
		b.y[v] = math.Inf(1)
		for _, k := range b.kinds {
			b.y[v] = min(b.y[v], l.time[k][v])
		}
		b.scale[v] = b.y[v]
		for _, w := range l.at[v] {
			b.scale[v] += l.wires[w].cost / float64(len(l.wires[w].members))
		}
	}
	b.best = append(b.best, b.y...)
	return b
}

// refine makes the cells of load finer, where the work allows it.
func (b *setBound) refine(effort int) {
	if b.labels*refining > effort {
		return
	}
	for j, c := range b.pricers {
		b.pricers[j] = newPricer(c.frontier, c.time, c.cells*refining)
	}
	b.labels *= refining
}

// steps is how many may be made for some millions of labels.
func (b *setBound) steps(labels int) int {
	return max(8, min(100, labels/b.labels))
}
