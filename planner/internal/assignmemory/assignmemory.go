// Package assignmemory finds the device map with the smallest largest share of a budget if any unit
// may be on any device. It starts from the contiguous optimum, and moves and swaps units as long as
// that lowers the largest share. A branch and bound over the counts of kinds of units (Martello and
// Toth, Knapsack Problems, 1990, §8.5) then looks for a smaller share. It ends when that is
// infeasible or the time is up. Its bounds hold for any assignment.
package assignmemory

import (
	"context"
	"fmt"

	"github.com/devmap-dev/devmap/planner/internal/assignment"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Method implements [instance.Method].
type Method struct{}

// Serves implements [instance.Method].
func (Method) Serves(in *instance.Instance) bool {
	return in.Objective != instance.Time && in.AnyAssignment && !in.Replicated()
}

// Why implements [instance.Method]. [instance.Answer.Found] gives details.
func (Method) Why(*instance.Instance) string {
	return "any assignment: local search, then branch and bound over the counts of kinds of units"
}

// Solve implements [instance.Method]. start is the contiguous optimum; nil if pins and
// together-groups allow no contiguous map.
func (Method) Solve(ctx context.Context, in *instance.Instance, limits instance.Limits, start *instance.Answer) (*instance.Answer, error) {
	problem, err := assignment.New(in)
	if err != nil {
		return nil, err
	}
	if start == nil && problem.TooLarge {
		return nil, fmt.Errorf("planner: %d units and %d devices are too many for any assignment, and the pins leave no contiguous one", len(in.Graph.Units), len(problem.Devices))
	}
	state := newSearch(ctx, problem, limits)
	if start != nil && state.loads != nil {
		state.offer(problem.CountsOf(start.Map))
	}
	state.run()
	return state.answer(start), nil
}

// TooLarge implements [instance.Sizer].
func (Method) TooLarge(_ context.Context, in *instance.Instance) (unit string, needs int64) {
	problem, err := assignment.New(in)
	if err != nil {
		return "", 0
	}
	if share, kind := problem.LargestItem(); kind >= 0 && share.Float() > 1 {
		return problem.NameOf(kind), 0
	}
	return "", 0
}
