package anyplace

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundprice"
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

// halve goes from answer to better answer of two devices, and then proves what it can: that
// none is left, or how much less there may be.
func (side *beside) halve(start []int32, known float64) {
	before := side.halves.Labels
	place, proof := side.halves.Below(side.part, start)
	for place != nil {
		side.halved = place
		place, proof = side.halves.Below(side.part, place)
	}
	if proof != nil {
		side.checked = max(side.checked, boundcheck.Refuted(side.part, side.Problem, proof, max(side.checked, known)))
	}
	if side.halves.Closed(side.checked) {
		side.stop() // the best that there was, or that it found, is the least
	}
	const labels = 5_000_000 // as long as a slice
	side.wait = (side.halves.Labels - before) / labels
	if !side.halves.Finer() {
		side.halves = nil
	}
}
