package netlist

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// Frontier lays out the choice of one device's set as a walk: item by item in
// or out, in an order that keeps few wires open. What was chosen before
// matters only through the open wires: all members in so far, all out, or
// mixed, which is paid. This is dynamic programming over a path decomposition
// of the hypergraph (Robertson and Seymour); the graphs of neural networks are
// long and thin, so states are few.
type Frontier struct {
	Order []int32
	// Arcs holds, for each step and each state before it, where leaving the
	// item out and taking it in leads.
	Arcs   [][][2]Arc
	States []int // after each step
}

// Arc is a choice. A wire that becomes mixed costs the device that has the
// items in, and another that has those left out, if there is just one.
type Arc struct {
	To      int32
	In, Out float64
}

const (
	wireOut   = 1
	wireIn    = 2
	wireMixed = 3
)

// LeastLoad is what loads must be above to be told apart in cells.
const LeastLoad = 1e-300

// widestStates bounds the states of a step.
const widestStates = 5000

// NewFrontier leaves out wires, the cheapest for the width they take first,
// until no step has more than widestStates: what is left out only lowers
// loads, so a bound stays one. It returns nil where the context ends.
func (l *Netlist) NewFrontier(ctx context.Context, withWires bool) *Frontier {
	used := make([]bool, len(l.Wires))
	for w := range used {
		used[w] = withWires
	}
	for ctx.Err() == nil {
		order := l.ThinOrder(ctx, used)
		if order == nil {
			return nil
		}
		if f := l.LayOut(ctx, order, used, widestStates); f != nil {
			return f
		}
		l.DropWires(order, used)
	}
	return nil
}

// spans are the first and last steps of the used wires.
func (l *Netlist) spans(order []int32, used []bool) (first, last []int) {
	first, last = make([]int, len(l.Wires)), make([]int, len(l.Wires))
	for w := range first {
		first[w], last[w] = math.MaxInt, -1
	}
	for i, v := range order {
		for _, w := range l.WiresOf[v] {
			if used[w] {
				first[w], last[w] = min(first[w], i), i
			}
		}
	}
	return first, last
}

// DropWires leaves out one wire in fifty, and one at least: those of the least
// cost for the steps that they are open.
func (l *Netlist) DropWires(order []int32, used []bool) {
	first, last := l.spans(order, used)
	var wires []int
	for w := range used {
		if used[w] {
			wires = append(wires, w)
		}
	}
	worth := func(w int) float64 { return l.Wires[w].Cost / float64(last[w]-first[w]) }
	slices.SortStableFunc(wires, func(a, b int) int { return cmp.Compare(worth(a), worth(b)) })
	for _, w := range wires[:(len(wires)+49)/50] {
		used[w] = false
	}
}
