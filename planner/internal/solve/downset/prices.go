package downset

import (
	"context"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundprice"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// priceWork is what prices are looked for at a time, in steps.
const priceWork = 2_000_000_000

// byPrices raises the bound by prices on sets, which holds for any assignment
// and so for contiguous parts, until the moment given. What it proves is
// checked apart from it.
func (call *contiguous) byPrices(ctx context.Context, end time.Time) error {
	part, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	sets := boundprice.New(part, netlist.New(graph.NewInstance(call.Problem, call.Problem.Groups())), call.Answer.Value)
	var checked *boundcheck.Proof
	for sets != nil && part.Err() == nil && !call.Proven() && !sets.Done(call.Answer.Value) {
		sets.Raise(call.Answer.LowerBound)
		sets.Improve(part, call.Answer.Value, priceWork)
		if proof := sets.Proof; proof != nil && proof != checked && proof.Limit > call.Answer.LowerBound {
			if checked = proof; boundcheck.Check(ctx, call.Problem, proof) == nil {
				call.Raise(proof.Limit, "sets: at some prices, all items are worth more than what all devices can take within this load")
			}
		}
		call.heed()
	}
	return ctx.Err()
}
