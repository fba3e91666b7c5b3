package partition

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// frontier lays out the choice of one device's set as a walk: item by item in
// or out, in an order that keeps few wires open. What was chosen before
// matters only through the open wires: all members in so far, all out, or
// mixed, which is paid. This is dynamic programming over a path decomposition
// of the hypergraph (Robertson and Seymour); the graphs of neural networks are
// long and thin, so states are few.
type frontier struct {
	order []int32
	// arcs holds, for each step and each state before it, where leaving the
	// item out and taking it in leads.
	arcs   [][][2]arc
	states []int // after each step
}

// arc is a choice. A wire that becomes mixed costs the device that has the
// items in, and another that has those left out, if there is just one.
type arc struct {
	to      int32
	in, out float64
}

const (
	wireOut   = 1
	wireIn    = 2
	wireMixed = 3
)

// newFrontier leaves out wires, the cheapest for the width they take first,
// until no step has more than widestStates: what is left out only lowers
// loads, so a bound stays one. It returns nil where the context ends.
func (l *netlist) newFrontier(ctx context.Context, withWires bool) *frontier {
	used := make([]bool, len(l.wires))
	for w := range used {
		used[w] = withWires
	}
	for ctx.Err() == nil {
		order := l.thinOrder(ctx, used)
		if order == nil {
			return nil
		}
		if f := l.layOut(ctx, order, used, widestStates); f != nil {
			return f
		}
		l.dropWires(order, used)
	}
	return nil
}

// spans are the first and last steps of the used wires.
func (l *netlist) spans(order []int32, used []bool) (first, last []int) {
	first, last = make([]int, len(l.wires)), make([]int, len(l.wires))
	for w := range first {
		first[w], last[w] = math.MaxInt, -1
	}
	for i, v := range order {
		for _, w := range l.at[v] {
			if used[w] {
				first[w], last[w] = min(first[w], i), i
			}
		}
	}
	return first, last
}

// dropWires leaves out one wire in fifty, and one at least: those of the least
// cost for the steps that they are open.
func (l *netlist) dropWires(order []int32, used []bool) {
	first, last := l.spans(order, used)
	var wires []int
	for w := range used {
		if used[w] {
			wires = append(wires, w)
		}
	}
	worth := func(w int) float64 { return l.wires[w].cost / float64(last[w]-first[w]) }
	slices.SortStableFunc(wires, func(a, b int) int { return cmp.Compare(worth(a), worth(b)) })
	for _, w := range wires[:(len(wires)+49)/50] {
		used[w] = false
	}
}
