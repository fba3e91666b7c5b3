package boundprice

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// Outgrown says that other walks tell more: the largest load known is a good deal
// below the one that they were laid out for, so that there are fewer states, or fewer
// wires left out; or these are too narrow.
func (bound *Bound) Outgrown(largest float64) bool {
	const deal = 0.98
	return largest < deal*bound.largest || bound.tooNarrow()
}

// Walks are narrow at first: what low loads need is found at once. Where a trial is
// lost they are made wider, widening times at a step, until nothing is left out or
// there are as many states as memory is set aside for, 160 bytes each. What the wires
// left out cost is lost at all prices.
const (
	widening   = 3
	mostStates = 600_000
)

// widens says that wider walks have more of the wires.
func (bound *Bound) widens() bool { return !bound.whole && widening*bound.width.All <= mostStates }

// tooNarrow says that a trial was lost where wider walks may not lose it.
func (bound *Bound) tooNarrow() bool { return bound.hard && bound.widens() }

// Again is the bound with walks laid out for the largest load known, wider ones where
// these are too narrow, and with the prices and sets found so far. It is the same where
// the context ends.
func (bound *Bound) Again(ctx context.Context, largest float64) *Bound {
	width := bound.width
	if bound.tooNarrow() {
		width = netlist.Width{Step: widening * width.Step, All: widening * width.All}
	}
	next := newWithin(ctx, bound.Netlist, largest, width)
	if next == nil {
		return bound
	}
	next.Value, next.own, next.Proof, next.stride = bound.Value, bound.own, bound.Proof, bound.stride
	copy(next.prices, bound.prices)
	next.failed = bound.failed
	for _, set := range bound.lp.sets {
		next.lp.add(set)
	}
	return next
}
