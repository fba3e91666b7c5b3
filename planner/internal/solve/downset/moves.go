package downset

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// Moves is the local search of contiguous parts by itself, from an answer of
// [Solve].
type Moves struct{ *mover }

// NewMoves begins a search, an own one for each stream of random numbers. It is nil where
// its tables would be too large.
func NewMoves(ctx context.Context, problem *graph.Problem, set graph.Settings, place []int, stream uint64) *Moves {
	fine, err := newOrder(problem, false)
	if err != nil {
		return nil
	}
	call := &contiguous{order: fine, Incumbent: graph.NewIncumbent(problem, set)}
	call.Answer.Place = place
	if move := call.newMover(ctx, stream); move != nil {
		return &Moves{move}
	}
	return nil
}

// Round makes one round and returns the best placement of the nodes so far, nil
// where there is none.
func (moves *Moves) Round(ctx context.Context) (place []int, largest float64) {
	return moves.round(ctx)
}

// Learn takes a placement that something else has found, where it is better than the best.
func (moves *Moves) Learn(place []int, largest float64) { moves.learn(place, largest) }
