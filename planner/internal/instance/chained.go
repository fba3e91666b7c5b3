package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// Chain returns the problem in numbers that package chain solves, without the peaks.
func (items *Items) Chain() chain.Problem {
	budgets := make([]int64, len(items.In.Topology.Devices))
	for device := range budgets {
		budgets[device] = items.In.Topology.Devices[device].Budget()
	}
	return chain.Problem{
		Items: items.Count(), Budgets: budgets, Groups: len(items.Groups),
		Pins: items.Pins, GroupPins: items.GroupPins, Follow: items.Follow,
	}
}

// SolveChain calls package chain, and converts cuts and group devices to a map of units. An error
// is a [*ConstraintError], a [*StageError], or a bug.
func (items *Items) SolveChain(ctx context.Context, problem chain.Problem, limits Limits) (*Answer, error) {
	found, err := chain.Solve(ctx, problem, chain.Settings{Probes: limits.Probes, Progress: limits.Progress, NoSquares: limits.ValueOnly})
	if err != nil {
		return nil, items.refusal(err)
	}
	return &Answer{
		Map:        items.Map(found.Cuts, found.GroupDevice),
		Claim:      found.Claim(),
		EvenProved: found.SquaresProved, Tried: found.Probes,
		Uneven: "the largest share is proved smallest; that the others are as even as they can be is not",
	}, nil
}

// Contradiction returns the pins that no map keeps as a [*ConstraintError]; nil if some map keeps
// all.
func (items *Items) Contradiction() error {
	problem := items.Chain()
	return items.refusal(problem.Conflict())
}

// refusal converts an error of package chain to the model's names.
func (items *Items) refusal(err error) error {
	var empty *chain.EmptyError
	if errors.As(err, &empty) {
		return items.noStage(empty)
	}
	var conflict *chain.ConflictError
	if !errors.As(err, &conflict) {
		return err
	}
	name := func(item int) string { return items.In.Graph.Units[items.Units(item)[0]].Name }
	reason := "each device takes one stretch of the model, in device order"
	if conflict.Across >= 0 {
		units := items.Groups[conflict.Across]
		reason = fmt.Sprintf("%q shares a parameter across both and must be on one device", items.In.Graph.Units[units[0]].Name)
	}
	return &ConstraintError{Msg: fmt.Sprintf("%q on device %d and %q on device %d contradict each other: %s",
		name(conflict.Items[0]), conflict.Devices[0], name(conflict.Items[1]), conflict.Devices[1], reason)}
}
