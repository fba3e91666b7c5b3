package boundprice

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// Outgrown says that other walks tell more: the largest load known is a good deal
// below the one that they were laid out for, so that there are fewer states, or fewer
// wires left out; or these are too narrow.
func (bound *Bound) Outgrown(largest float64) bool {
	const deal = 0.98
	return largest < deal*bound.largest || bound.tooNarrow(largest)
}

// Walks are narrow at first: what low loads need is found at once. Where a trial is
// lost they are made wider, widening times at a step, until little is left out or
// there are as many states as memory is set aside for, 160 bytes each. What the wires
// left out cost is lost at all prices.
const (
	widening   = 3
	mostStates = 600_000
)

// lostBy is what the wires cost of which a frontier leaves out something.
func lostBy(nets *netlist.Netlist, frontier *netlist.Frontier) (cost float64) {
	for _, wire := range frontier.Left {
		cost += nets.Wires[wire].Cost
	}
	for wire := range frontier.Short {
		cost += nets.Wires[wire].Cost
	}
	return cost
}

// widens says that wider walks may tell a good deal more. A wire is paid by two devices
// at least: with less than a part of the gap to be had of those left out, quick walks
// come further.
func (bound *Bound) widens(largest float64) bool {
	const part = 0.5
	devices := graph.Sum(bound.lp.count)
	return widening*bound.width.All <= mostStates && 2*bound.lost > part*devices*(largest-bound.own)
}

// tooNarrow says that a trial was lost where wider walks may not lose it.
func (bound *Bound) tooNarrow(largest float64) bool { return bound.hard && bound.widens(largest) }

// Again is the bound with walks laid out for the largest load known, wider ones where
// these are too narrow, and with the prices and sets found so far. It is the same where
// the context ends.
func (bound *Bound) Again(ctx context.Context, largest float64) *Bound {
	width := bound.width
	if bound.tooNarrow(largest) {
		width = netlist.Width{Step: widening * width.Step, All: widening * width.All}
	}
	next := newWithin(ctx, bound.Netlist, largest, width)
	if next == nil {
		return bound
	}
	next.Value, next.own, next.Proof, next.stride = bound.Value, bound.own, bound.Proof, bound.stride
	copy(next.prices, bound.prices)
	next.share(bound.walkers[0].tables)
	next.failed = bound.failed
	for _, set := range bound.lp.sets {
		set.load = next.loadOf(set.kind, set.items) // walks that left more out had it lower
		next.lp.add(set)
	}
	return next
}
