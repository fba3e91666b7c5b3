package boundprice

import "context"

// Outgrown says that the largest load known is a good deal below the one that the
// walks were laid out for: with it fewer states, or fewer wires left out.
func (bound *Bound) Outgrown(largest float64) bool {
	const deal = 0.98
	return largest < deal*bound.largest
}

// Again is the bound with walks laid out for the largest load known, and with the
// prices and sets found so far. It is the same where the context ends.
func (bound *Bound) Again(ctx context.Context, largest float64) *Bound {
	next := New(ctx, bound.Netlist, largest)
	if next == nil {
		return bound
	}
	next.Value, next.own, next.Proof, next.stride = bound.Value, bound.own, bound.Proof, bound.stride
	copy(next.prices, bound.prices)
	for _, set := range bound.lp.sets {
		next.lp.add(set)
	}
	return next
}
