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
	// item out and taking it in leads, or Nowhere.
	Arcs   [][][2]Arc
	States []int // after each step
	// Left are the wires that are left out, Short what is left of others.
	Left  []int
	Short map[int][]int32
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

// MinLoad is what loads must be above to be told apart in cells.
const MinLoad = 1e-300

// Width bounds the states of a step, and those of all.
type Width struct{ Step, All int }

// Narrow is quick to walk along many times.
var Narrow = Width{Step: 1500, All: 60_000}

// NewFrontier shortens wires and leaves some out, the cheapest for the width they
// take first, until sets within the budget have not too many states: that only
// lowers loads, so a bound stays one. It returns nil where the context ends.
func (nets *Netlist) NewFrontier(ctx context.Context, withWires bool, most Width, budget Budget) *Frontier {
	used := slices.Repeat([]bool{withWires}, len(nets.Wires))
	if !withWires && budget.Items != nil {
		return nets.longestFirst(ctx, used, budget)
	}
	short := nets
	for ctx.Err() == nil {
		order := short.ThinOrder(ctx, used)
		if order == nil {
			return nil
		}
		if frontier := short.LayOut(ctx, order, used, most, budget); frontier != nil {
			frontier.Short = make(map[int][]int32)
			for wire := range used {
				switch {
				case !used[wire]:
					frontier.Left = append(frontier.Left, wire)
				case len(short.Wires[wire].Members) < len(nets.Wires[wire].Members):
					frontier.Short[wire] = short.Wires[wire].Members
				default:
				}
			}
			return frontier
		}
		short = short.shortened(order, used)
	}
	return nil
}

// longestFirst is the frontier without wires: any order is as thin, and what is to
// come is the easier to bound the finer it is.
func (nets *Netlist) longestFirst(ctx context.Context, used []bool, budget Budget) *Frontier {
	order := make([]int32, len(nets.Nodes))
	for item := range order {
		order[item] = int32(item)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(budget.Items[b], budget.Items[a]) })
	frontier := nets.LayOut(ctx, order, used, Width{math.MaxInt, math.MaxInt}, budget)
	for wire := range used {
		if frontier != nil {
			frontier.Left = append(frontier.Left, wire)
		}
	}
	return frontier
}

// NewFrontierOf is one of some of the items, in the order given; all others
// are left out of the device's set. It is nil where the context ends.
func (nets *Netlist) NewFrontierOf(ctx context.Context, order []int32, withWires bool, most Width, budget Budget) *Frontier {
	touched, used := make([]bool, len(nets.Wires)), make([]bool, len(nets.Wires))
	for _, item := range order {
		for _, wire := range nets.WiresOf[item] {
			touched[wire], used[wire] = true, withWires
		}
	}
	for ctx.Err() == nil {
		if frontier := nets.LayOut(ctx, order, used, most, budget); frontier != nil {
			for wire := range used {
				if touched[wire] && !used[wire] {
					frontier.Left = append(frontier.Left, wire)
				}
			}
			return frontier
		}
		nets.DropWires(order, used)
	}
	return nil
}

// spans are the first and last steps of the used wires.
func (nets *Netlist) spans(order []int32, used []bool) (first, last []int) {
	first, last = make([]int, len(nets.Wires)), make([]int, len(nets.Wires))
	for wire := range first {
		first[wire], last[wire] = math.MaxInt, -1
	}
	for i, item := range order {
		for _, wire := range nets.WiresOf[item] {
			if used[wire] {
				first[wire], last[wire] = min(first[wire], i), i
			}
		}
	}
	return first, last
}

// DropWires leaves out one wire in fifty, and one at least: those of the least
// cost for the steps that they are open.
func (nets *Netlist) DropWires(order []int32, used []bool) {
	first, last := nets.spans(order, used)
	var wires []int
	for wire := range used {
		if used[wire] {
			wires = append(wires, wire)
		}
	}
	worth := func(wire int) float64 { return nets.Wires[wire].Cost / float64(last[wire]-first[wire]) }
	slices.SortStableFunc(wires, func(a, b int) int { return cmp.Compare(worth(a), worth(b)) })
	for _, wire := range wires[:(len(wires)+49)/50] {
		used[wire] = false
	}
}
