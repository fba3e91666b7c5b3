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
	// y are the prices, best those behind the bound, g the subgradient, scale
	// what an item's price may differ by.
	y, best, g, scale []float64
	Bound             float64
	// step is a fraction of Polyak's length, lead how far above the bound the
	// steps aim, stale how many have not helped.
	step, lead float64
	stale      int
	labels     int // that one step may look at
}

// staleSteps are tried before the aim is lowered, to leastLead in the end;
// refining is how many finer cells a cell becomes.
const (
	staleSteps = 20
	leastLead  = 0.002
	refining   = 4
)

func New(ctx context.Context, l *netlist.Netlist, effort int) *SetBound {
	b := &SetBound{
		Netlist: l, step: 1, lead: 0.05,
		y: make([]float64, len(l.Nodes)), g: make([]float64, len(l.Nodes)), scale: make([]float64, len(l.Nodes)),
	}
	for k, n := range l.Count {
		if n == 0 {
			continue
		}
		f := l.NewFrontier(ctx, !l.Free[k])
		if f == nil {
			return nil
		}
		total := 0
		for _, s := range f.States {
			total += s
		}
		cells := max(300, min(2000, effort/total))
		b.kinds = append(b.kinds, k)
		b.pricers = append(b.pricers, newPricer(f, l.Time[k], cells))
		b.labels = max(b.labels, total*cells)
	}
	b.fronts = make([][]label, len(b.kinds))
	for v := range b.y {
		b.y[v] = math.Inf(1)
		for _, k := range b.kinds {
			b.y[v] = min(b.y[v], l.Time[k][v])
		}
		b.scale[v] = b.y[v]
		for _, w := range l.WiresOf[v] {
			b.scale[v] += l.Wires[w].Cost / float64(len(l.Wires[w].Members))
		}
	}
	b.best = append(b.best, b.y...)
	return b
}

// Refine makes the cells of load finer, where the work allows it.
func (b *SetBound) Refine(effort int) {
	if b.labels*refining > effort {
		return
	}
	for j, c := range b.pricers {
		b.pricers[j] = newPricer(c.Frontier, c.time, c.cells*refining)
	}
	b.labels *= refining
}

// Steps is how many may be made for some millions of labels.
func (b *SetBound) Steps(labels int) int {
	return max(8, min(100, labels/b.labels))
}

// Improve makes steps until the bound reaches the limit or they are used up.
func (b *SetBound) Improve(ctx context.Context, limit float64, steps int) {
	if limit < netlist.LeastLoad {
		return
	}
	for range steps {
		if !b.price(ctx, limit) || b.Bound >= limit {
			return
		}
		if b.stale > staleSteps {
			b.stale = 0
			b.lead = max(b.lead/2, leastLead)
			b.step = max(b.step*0.7, 0.05)
			copy(b.y, b.best)
			if !b.price(ctx, limit) {
				return
			}
		}
		if !b.move(min(b.Bound*(1+b.lead), limit)) {
			return
		}
	}
}

// price finds what devices can take at the present prices, and the bound.
func (b *SetBound) price(ctx context.Context, limit float64) bool {
	total, size := 0.0, 0.0
	for _, y := range b.y {
		total += y
		size += math.Abs(y)
	}
	for j, c := range b.pricers {
		if b.fronts[j] = c.price(ctx, b.y, limit); b.fronts[j] == nil {
			return false
		}
	}
	b.stale++
	if t := b.refuted(total-graph.Rounding*size, limit); t > b.Bound {
		if t > b.Bound*(1+1e-4) {
			b.stale = 0
		}
		b.Bound = t
		copy(b.best, b.y)
	}
	return true
}

// move changes the prices along the subgradient, at the aim, of what devices
// can take less what there is: up where no device's best set holds the item.
func (b *SetBound) move(aim float64) bool {
	excess, total := 0.0, 0.0
	for v, y := range b.y {
		b.g[v] = -1
		total += y
	}
	for j, k := range b.kinds {
		n := float64(b.Count[k])
		last := within(b.fronts[j], aim)
		excess += n * b.fronts[j][last].worth
		b.pricers[j].set(last, b.g, n)
	}
	norm := 0.0
	for v, g := range b.g {
		norm += g * g * b.scale[v] * b.scale[v]
	}
	if norm == 0 {
		return false
	}
	length := b.step * (max(excess-total, 0) + 0.001*total) / norm
	for v, g := range b.g {
		b.y[v] -= length * g * b.scale[v] * b.scale[v]
	}
	return true
}

// within is the last label of load up to t.
func within(front []label, t float64) int {
	i, _ := slices.BinarySearchFunc(front, t, func(a label, t float64) int {
		if a.load <= t {
			return -1
		}
		return 1
	})
	return i - 1
}

// refuted is the least load at which the devices together can take what all
// items are worth, or the limit.
func (b *SetBound) refuted(total, limit float64) float64 {
	next := make([]int, len(b.fronts))
	worth := 0.0
	for j, front := range b.fronts {
		worth += float64(b.Count[b.kinds[j]]) * front[0].worth
	}
	t := 0.0
	for worth < total {
		pick := -1
		for j, front := range b.fronts {
			if next[j]+1 < len(front) && (pick < 0 || front[next[j]+1].load < b.fronts[pick][next[pick]+1].load) {
				pick = j
			}
		}
		if pick < 0 {
			return limit
		}
		a, z := b.fronts[pick][next[pick]], b.fronts[pick][next[pick]+1]
		worth += float64(b.Count[b.kinds[pick]]) * (z.worth - a.worth)
		t = z.load
		next[pick]++
	}
	return t * (1 - 1e-9)
}
