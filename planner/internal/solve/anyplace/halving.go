package anyplace

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundprice"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// halving is what two like devices can do, in turns with all else: each turn tells more
// sets apart, and takes longer.
type halving struct {
	halves *boundprice.Halves // nil: there are others, or it has said all
	halved []int32            // an answer that it found
	// wait is how many slices all else has before the next turn.
	wait int
}

// byHalves is how an answer was found.
const byHalves = "two devices: a walk through all sets of half the time that may be within less than the answer"

func newHalving(ctx context.Context, nets *netlist.Netlist, largest float64) halving {
	return halving{halves: boundprice.NewHalves(ctx, nets, largest)}
}

// due tells that it has a turn.
func (half *halving) due() bool {
	if half.halves == nil {
		return false
	}
	half.wait--
	return half.wait < 0
}

// halve goes from answer to better answer, and then proves what it can, as other code
// checks: that none is left, which closed tells, or that there is none of a load.
func (half *halving) halve(
	ctx context.Context, problem *graph.Problem, start []int32, known float64,
) (refuted float64, closed bool) {
	before := half.halves.Labels
	place, proof := half.halves.Below(ctx, start)
	for place != nil {
		half.halved = place
		place, proof = half.halves.Below(ctx, place)
	}
	if refuted = known; proof != nil {
		refuted = max(known, boundcheck.Refuted(ctx, problem, proof, known))
	}
	closed = half.halves.Closed(refuted)
	const labels = 5_000_000 // as long as a slice
	half.wait = (half.halves.Labels - before) / labels
	if !half.halves.Finer() {
		half.halves = nil
	}
	return refuted, closed
}
