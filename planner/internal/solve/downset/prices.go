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
const priceWork = 100_000_000

// byPrices raises the bound by prices on sets, which holds for any assignment
// and so for contiguous parts, until about the moment given; the next time it goes on.
// What it proves is checked apart from it.
func (call *contiguous) byPrices(ctx context.Context, end time.Time) error {
	if call.sets == nil {
		call.sets = boundprice.New(ctx, netlist.New(graph.NewInstance(call.Problem, call.Problem.Groups())), call.Answer.Value)
	}
	for call.sets != nil && time.Now().Before(end) && ctx.Err() == nil && !call.Proven() && !call.sets.Done(call.Answer.Value) {
		if call.sets.Outgrown(call.Answer.Value) {
			call.sets = call.sets.Again(ctx, call.Answer.Value)
		}
		before := call.sets.Proof
		call.sets.Raise(call.Answer.LowerBound)
		call.sets.Improve(ctx, call.Answer.Value, priceWork)
		if proof := call.sets.Proof; proof != nil && proof != before && proof.Limit > call.Answer.LowerBound {
			if limit := boundcheck.Refuted(ctx, call.Problem, proof, call.Answer.LowerBound); limit > 0 {
				call.Raise(limit, "sets: at some prices, all items are worth more than what all devices can take within this load")
			}
		}
		call.heed()
	}
	return ctx.Err()
}
