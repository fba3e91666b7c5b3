package anyplace

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundprice"
	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
)

// beside is what runs on the other processor. It must not touch the answer
// before it has ended.
type beside struct {
	*anywhere
	find  *finder
	ahead leader
	laid  bool              // sets or halves are made
	sets  *boundprice.Bound // nil: halves know more
	known float64           // the answer's value when its sets were last told
	halving
	// checked is the highest load that a checked proof refutes.
	checked float64
	// doubted is the load of the last proof that a check did not come through with.
	doubted float64
	found   bool // there may be something that find found
	// part ends with the context, or where the bound meets the answer.
	part    context.Context //nolint:containedctx // of one run
	stop    context.CancelFunc
	done    chan struct{} // nil: it does not run
	awaited atomic.Bool   // the search has ended its round
}

func (call *anywhere) newBeside() *beside {
	return &beside{anywhere: call, ahead: leader{rowMoves: call.newRowMoves(1)}}
}

// begin starts a run: of one slice of work, or, with a deadline, of as many as
// are done when the search comes to the end of its round.
func (side *beside) begin(ctx context.Context, timed bool) {
	start, largest, bound := append([]int32(nil), side.best...), side.Answer.Value, side.Answer.LowerBound
	side.part, side.stop = context.WithCancel(ctx)
	side.done, side.found = make(chan struct{}), false
	side.awaited.Store(!timed)
	side.lead(timed)
	go func() {
		defer close(side.done)
		if !side.laid {
			side.laid = true
			if side.halving = newHalving(side.part, side.Netlist, largest); side.halves == nil {
				side.sets = boundprice.New(side.part, side.Netlist, largest)
			}
		}
		if len(start) == 0 {
			return
		}
		for again := true; again; again = !side.handsIn() && !side.awaited.Load() && side.part.Err() == nil {
			began := time.Now()
			rising := side.slice(start, largest, bound)
			side.move(rising, time.Since(began))
		}
	}()
}

// handsIn tells that there may be a better answer.
func (side *beside) handsIn() bool { return side.found || side.ahead.better || side.halved != nil }

// slice is a part of a run: two like devices are halved in turns with the search, others
// bounded for as long as prices prove more, which it tells, and then searched.
func (side *beside) slice(start []int32, largest, bound float64) (rising bool) {
	switch {
	case side.due():
		refuted, closed := side.halve(side.part, side.Problem, start, max(side.checked, bound))
		if side.checked = refuted; closed {
			side.stop() // the best that there was, or that it found, is the least
		}
		return true
	case side.sets == nil || side.sets.Done(largest):
		side.find.know(start, largest, bound)
		side.find.round(side.part)
		side.found = true
		return false
	default:
		if side.sets.Outgrown(largest) {
			side.sets = side.sets.Again(side.part, largest)
		}
		if largest != side.known {
			side.sets.Know(start)
			side.known = largest
		}
		side.sets.Raise(bound)
		side.sets.Improve(side.part, largest, boundWork)
		side.check(largest, bound)
		return true
	}
}

// check has the bound's proof checked where it is above what is known, and the last
// there will be or a good deal above the last one that was: a check may take a
// second.
func (side *beside) check(largest, known float64) {
	const deal, part = 1 + 5e-4, 0.04
	proof := side.sets.Proof
	if proof == nil {
		return
	}
	before := max(side.checked, side.doubted, known)
	if proof.Limit <= max(before*deal, before+part*(largest-before)) && !(proof.Limit > before && side.sets.Done(largest)) {
		return
	}
	limit := boundcheck.Refuted(side.part, side.Problem, proof, max(side.checked, known))
	if limit < proof.Limit {
		side.doubted = proof.Limit
	}
	side.checked = max(side.checked, limit)
	if side.sets.Closes(side.checked, largest) {
		side.stop() // what the answer's value was at the beginning is the least
	}
}

// end takes what the run brought, if it has ended or is to be waited for.
func (side *beside) end(wait bool) {
	if side.done == nil {
		return
	}
	side.awaited.Store(true)
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
		side.take(side.halved, 0, byHalves)
		side.halved = nil
	}
	if side.ahead.better {
		side.takeRow(side.ahead.row, side.ahead.value, downset.ByMoves)
	}
	if side.found {
		side.take(side.find.at, side.find.value, side.find.method)
	}
}

// close ends a run and takes what it brought.
func (side *beside) close() {
	if side.done != nil {
		side.stop()
		side.end(true)
	}
}
