package anyplace

import (
	"context"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// rowMoves goes on with the contiguous answer by moves, in one goroutine.
type rowMoves struct {
	problem  *graph.Problem
	settings graph.Settings
	stream   uint64 // of random numbers
	search   *downset.Moves
	none     bool // the tables would be too large
}

func (call *anywhere) newRowMoves(stream uint64) rowMoves {
	return rowMoves{problem: call.Problem, settings: call.Settings, stream: stream}
}

// round makes one round from the best that is known, of the nodes, and returns the best
// so far; nil where there is none.
func (rows *rowMoves) round(ctx context.Context, known []int, value float64) (place []int, largest float64) {
	if rows.search == nil && !rows.none {
		rows.search = downset.NewMoves(ctx, rows.problem, rows.settings, known, rows.stream)
		rows.none = rows.search == nil
	}
	if rows.none {
		return nil, 0
	}
	rows.search.Learn(known, value)
	return rows.search.Round(ctx)
}

// leader is the contiguous answer where it is the best, or nearly: the other goroutine
// goes on with it too, then.
type leader struct {
	rowMoves
	row   []int
	value float64
	// better: it found a better one.
	better bool
	// moved is the time spent on it, others that on all else.
	moved, others time.Duration
}

// behindBound is the part of the time of a bound that still rises which the contiguous
// answer is given, and inFront that of a search.
const behindBound = 1. / 3

// leads tells the other goroutine what there is, before it begins.
func (side *beside) leads(timed bool) {
	lead := &side.lead
	if lead.row, lead.better = nil, false; timed && side.share() == inFront {
		lead.row, lead.value = side.row, side.rowValue
	}
}

// move goes on with the contiguous answer until it has had its part of the time.
func (side *beside) move(rising bool) {
	part, lead := inFront, &side.lead
	if rising {
		part = behindBound
	}
	for lead.row != nil && !lead.better && side.part.Err() == nil && lead.moved.Seconds() < part*lead.others.Seconds() {
		began := time.Now()
		place, value := lead.round(side.part, lead.row, lead.value)
		if place != nil && value < lead.value*(1-graph.Rounding) {
			lead.row, lead.value, lead.better = place, value, true
		} else if lead.none {
			lead.row = nil
		}
		lead.moved += time.Since(began)
	}
}
