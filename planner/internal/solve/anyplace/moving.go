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

// leader is the contiguous answer where it is the best: the other goroutine goes on with
// it too, then.
type leader struct {
	rowMoves
	row   []int
	value float64
	// better: it found a better one.
	better bool
	// moved is the time spent on it, others that on all else.
	moved, others time.Duration
}

// behindBound is how long the contiguous answer is searched for beside a bound that still
// rises, as a part of that's time; beside a search it is as long.
const behindBound = 1. / 3

// lead tells the other goroutine what there is, before it begins.
func (side *beside) lead(timed bool) {
	ahead := &side.ahead
	if ahead.row, ahead.better = nil, false; timed && side.leads() {
		ahead.row, ahead.value = side.row, side.rowValue
	}
}

// move goes on with the contiguous answer, after so long on all else, until it has had its
// part of the time.
func (side *beside) move(rising bool, others time.Duration) {
	part, ahead := 1., &side.ahead
	if rising {
		part = behindBound
	}
	if ahead.row != nil {
		ahead.others += others
	}
	for ahead.row != nil && !ahead.better && ahead.moved.Seconds() < part*ahead.others.Seconds() {
		if side.part.Err() != nil {
			return
		}
		began := time.Now()
		place, value := ahead.round(side.part, ahead.row, ahead.value)
		if place != nil && value < ahead.value*(1-graph.Rounding) {
			ahead.row, ahead.value, ahead.better = place, value, true
		} else if ahead.none {
			ahead.row = nil
		}
		ahead.moved += time.Since(began)
	}
}
