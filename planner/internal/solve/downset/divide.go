package downset

import (
	"context"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundwindow"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// byBoundaries is the method of what the bound of the boundaries answers.
const byBoundaries = "boundaries: minimum cuts at prices, branch and bound over the windows of stages"

// below is the part of a value that a placement must be better by.
const below = 2.5e-9

// divider divides the placements in branches, for the bound.
type divider struct {
	*order
	*boundwindow.Trials
	branches int
}

// newDivider is nil where there are several kinds of devices, no answer, or too
// many nodes.
func (call *contiguous) newDivider() *divider {
	if call.Answer.Place == nil {
		return nil
	}
	fine := call.fine()
	tree := boundwindow.NewTree(netlist.New(fine.Instance), fine.before, fine.after, call.Answer.Value*(1-below))
	if tree == nil {
		return nil
	}
	out := &divider{order: fine, Trials: boundwindow.NewTrials(tree)}
	tree.Found = func(stage []int) { call.Take(out.places(stage), byBoundaries) }
	return out
}

// places are the devices of stages.
func (tree *divider) places(stage []int) []int {
	first := 0
	for _, kind := range tree.Problem.Kinds {
		if kind.Count > 0 {
			break
		}
		first += kind.Count
	}
	place := make([]int, len(tree.ItemOf))
	for node, item := range tree.ItemOf {
		place[node] = first + stage[item]
	}
	return place
}

// divide goes on dividing until all is proven, there is nothing left to divide,
// so many branches were looked at, or the end.
func (call *contiguous) divide(ctx context.Context, end time.Time, most int) error {
	call.wait(ctx, end)
	if call.tree == nil {
		if call.tree = call.newDivider(); call.tree == nil {
			return nil
		}
		call.alongSpine(ctx, call.tree)
	}
	for range most {
		if call.tree.Done() || call.Proven() || ctx.Err() != nil || !end.IsZero() && time.Now().After(end) {
			break
		}
		call.heed()
		call.tree.Lower(call.Answer.Value * (1 - below))
		call.tree.Raise(call.Answer.LowerBound)
		call.tree.Step(ctx)
		call.tree.branches++
		call.tree.Lower(call.Answer.Value * (1 - below))
		call.lend(ctx)
		call.Raise(call.tree.Bound(), fmt.Sprintf("boundaries: minimum cuts at prices, in all %d branches of the windows of stages", call.tree.branches))
	}
	return ctx.Err()
}

// wait looks for a first answer, where there is none, until the moment given.
func (call *contiguous) wait(ctx context.Context, end time.Time) {
	if call.Answer.Place != nil || end.IsZero() {
		return
	}
	move := call.newMover(ctx, 3)
	for move != nil && call.Answer.Place == nil && ctx.Err() == nil && time.Now().Before(end) {
		if place, _ := move.round(ctx); place != nil {
			call.Take(place, ByMoves)
		}
		call.heed()
	}
}
