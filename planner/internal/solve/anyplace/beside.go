package anyplace

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundprice"
)

// beside is what runs on the other processor. It must not touch the answer
// before it has ended.
type beside struct {
	*anywhere
	*annealer
	sets  *boundprice.Bound
	known float64 // the answer's value when its sets were last told
	// halves is what two devices can do; nil: there are others, or it has said all.
	halves *boundprice.Halves
	halved []int32 // an answer that it found
	// checked is the highest load that a checked proof refutes.
	checked float64
	cooled  bool
	// part ends with the context, or where the bound meets the answer.
	part context.Context //nolint:containedctx // of one run
	stop context.CancelFunc
	done chan struct{} // nil: it does not run
}

func (side *beside) begin(ctx context.Context, round int) {
	start, largest, bound := append([]int32(nil), side.anywhere.best...), side.Answer.Value, side.Answer.LowerBound
	side.part, side.stop = context.WithCancel(ctx)
	side.done, side.cooled = make(chan struct{}), false
	go func() {
		defer close(side.done)
		if round == 0 {
			side.halves = boundprice.NewHalves(ctx, side.Netlist, largest)
			side.sets = boundprice.New(ctx, side.Netlist, largest)
		}
		if len(start) == 0 {
			return
		}
		if side.halves != nil {
			side.halve(start)
			return
		}
		if side.sets == nil || side.sets.Done(largest) {
			side.refresh(start)
			side.forget()
			side.cool(ctx, largest, side.steps)
			side.cooled = true
			return
		}
		if largest != side.known {
			side.sets.Know(start)
			side.known = largest
		}
		side.sets.Raise(bound)
		side.sets.Improve(ctx, largest, boundWork)
		side.check(largest)
	}()
}

// halve goes from answer to better answer of two devices, until there is a proof
// that none is left or walks become too long.
func (side *beside) halve(start []int32) {
	place, proof := side.halves.Below(side.part, start)
	for place != nil {
		side.halved = place
		place, proof = side.halves.Below(side.part, place)
	}
	side.halves = nil
	if proof == nil || boundcheck.Check(side.part, side.Problem, proof) != nil {
		return
	}
	side.checked = max(side.checked, proof.Limit)
	side.stop()
}

// check has the bound's proof checked where it is a good deal above the last one
// that was, or the last there will be.
func (side *beside) check(largest float64) {
	const deal = 1 + 5e-4
	proof := side.sets.Proof
	if proof == nil || proof.Limit <= side.checked || proof.Limit <= side.checked*deal && !side.sets.Done(largest) {
		return
	}
	if err := boundcheck.Check(side.part, side.Problem, proof); err != nil {
		return
	}
	side.checked = proof.Limit
	if side.sets.Closes(side.checked, largest) {
		side.stop() // what the answer's value was at the beginning is the least
	}
}

// end takes what the run brought, if it has ended or is to be waited for.
func (side *beside) end(wait bool) {
	if side.done == nil {
		return
	}
	if !wait {
		select {
		case <-side.done:
		default:
			return
		}
	}
	<-side.done
	side.stop()
	side.done = nil
	if side.checked > 0 {
		side.Raise(side.checked, "sets: at some prices, all items are worth more than what all devices can take within this load")
	}
	if side.halved != nil {
		side.take(side.halved, 0, "two devices: a walk through all sets of half the time that may be within less than the answer")
		side.halved = nil
	}
	if side.cooled && side.found() {
		side.take(side.annealer.best, side.bestLoad, "simulated annealing, cooled slowly from the best answer")
	}
}
