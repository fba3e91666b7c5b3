package downset

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// Moves is the local search of contiguous parts by itself, from an answer of
// [Solve].
type Moves struct{ *mover }

// NewMoves begins a search. It is nil where its tables would be too large.
func NewMoves(ctx context.Context, problem *graph.Problem, set graph.Settings, place []int) *Moves {
	fine, err := newOrder(problem, false)
	if err != nil {
		return nil
	}
	call := &contiguous{order: fine, Incumbent: graph.NewIncumbent(problem, set)}
	call.Answer.Place = place
	if move := call.newMover(ctx, 2); move != nil {
		return &Moves{move}
	}
	return nil
}

// Round makes one round and returns the best placement of the nodes so far, nil
// where there is none.
func (moves *Moves) Round(ctx context.Context) (place []int, largest float64) {
	return moves.round(ctx)
}
