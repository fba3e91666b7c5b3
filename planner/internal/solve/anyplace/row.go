package anyplace

import (
	"context"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// near is how far behind the best, as a part of it, the contiguous answer may be for
// the search to go on with it too.
const near = 0.01

// share is the part of the time spent on any assignment that the contiguous answer
// is given too: as much where it is near the best, less the farther behind it is.
// Where parts that stand in a row are no worse than others, the search for them is
// the faster.
func (call *anywhere) share() float64 {
	if call.row == nil || call.best == nil {
		return 0
	}
	return min(1, max(0, 1-(call.rowValue/call.Answer.Value-1)/near))
}

// leads tells that the contiguous answer is the best.
func (call *anywhere) leads() bool {
	return call.row != nil && call.rowValue <= call.Answer.Value*(1+graph.Rounding)
}

// inRow goes on with the contiguous answer until it has had its share.
func (call *anywhere) inRow(ctx context.Context, find *finder) {
	for ctx.Err() == nil && call.rowSpent.Seconds() < call.share()*call.spent.Seconds() {
		began := time.Now()
		call.rowRound(ctx, find)
		call.rowSpent += time.Since(began)
	}
}

// again is how many times as long as the last one a whole search for the contiguous
// answer is: all of them together take no more than twice as long as the last.
const again = 2

// closable tells that a contiguous answer may be better than the best, and that its own
// bound is so near that a whole search may find it, or prove that there is none: moves
// find neither where few devices have much each.
func (call *anywhere) closable() bool {
	best := call.Answer.Value
	return call.rowBound < best*(1-graph.Rounding) && call.rowBound > best*(1-2*near)
}

// rowRound searches the whole anew where that may close the gap, and makes moves for as
// long in between.
func (call *anywhere) rowRound(ctx context.Context, find *finder) {
	if call.closable() && 2*call.wholeSpent <= call.rowSpent {
		began, before := time.Now(), call.Answer.Value
		part, cancel := context.WithTimeout(ctx, again*call.whole)
		defer cancel()
		whole := call.inOrder(part)
		call.wholeSpent += time.Since(began)
		if call.Answer.Value < before {
			call.follow(ctx, find)
		}
		if whole {
			call.row = nil // it is the least
		}
		return
	}
	if place, largest := call.moves.round(ctx, call.row, call.rowValue); call.moves.none {
		call.row = nil // it does not go on
	} else if place != nil && call.takeRow(place, largest, downset.ByMoves) {
		call.follow(ctx, find)
	}
}

// takeRow takes a contiguous answer.
func (call *anywhere) takeRow(row []int, largest float64, method string) (better bool) {
	if call.row != nil && largest < call.rowValue {
		call.row, call.rowValue = row, largest
	}
	place := make([]int32, len(call.Nodes))
	for node, device := range row {
		place[call.ItemOf[node]] = int32(device)
	}
	before := call.Answer.Value
	call.take(place, largest, method)
	return call.Answer.Value < before
}
