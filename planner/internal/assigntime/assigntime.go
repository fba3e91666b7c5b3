// Package assigntime finds a device map with a short step if any unit may be on any device. It is a
// local search from the contiguous optimum. Its bounds hold for any assignment: the Lagrangian dual
// of a transport problem, which is Dantzig's bound of the knapsack problem for two speeds of
// devices.
package assigntime

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/internal/assignment"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Method implements [instance.Method].
type Method struct{}

// Serves implements [instance.Method].
func (Method) Serves(in *instance.Instance) bool {
	return in.Objective == instance.Time && in.AnyAssignment && !in.Replicated()
}

// Why implements [instance.Method].
func (Method) Why(*instance.Instance) string {
	return "any assignment: local search from the contiguous optimum (units and stretches moved, units swapped), with bounds that hold for any map"
}

// Solve implements [instance.Method]. start is the contiguous answer. If there is none, it is any
// map that fits, with NaN as its step.
func (Method) Solve(ctx context.Context, in *instance.Instance, _ instance.Limits, start *instance.Answer) (*instance.Answer, error) {
	problem, err := assignment.New(in)
	if err != nil {
		return nil, err
	}
	search := newSearch(ctx, problem, start.Map)
	search.run()
	if err := in.Linked(search.best); err != nil {
		return nil, err
	}
	return search.answer(start), nil
}

// answer returns the search's result.
func (search *localSearch) answer(start *instance.Answer) *instance.Answer {
	in := search.problem.In
	out := &instance.Answer{
		Map: search.best, Tried: search.tried, Bounds: search.bounds, Uneven: instance.StepUneven,
		Claim: certificate.Claim{Value: search.bestScore.step, Rounding: certificate.Sums, Stopped: search.ctx.Err() != nil},
	}
	for _, bound := range search.bounds {
		if out.Bound == "" || bound.Value > out.LowerBound {
			out.LowerBound, out.Bound = bound.Value, bound.Name
		}
	}
	contiguous := !math.IsNaN(start.Value)
	if note := in.SentNote(out.Map); note != "" && (!contiguous || !slices.Equal(out.Map, start.Map)) {
		if contiguous {
			note += fmt.Sprintf(", %v under the best contiguous map (step %.4g s)", costmodel.Bytes(in.Sent(start.Map)), start.Value)
		}
		out.Notes = append(out.Notes, note)
	}
	return out
}

// run computes the bounds, descends from the start, and disturbs the best map until it meets a
// bound.
func (search *localSearch) run() {
	search.bounds = search.lower()
	search.descend()
	search.keep()
	for kicks := 0; kicks < maxKicks && !search.closed() && !search.stopped(); kicks++ {
		copy(search.at, search.best)
		if !search.kick() {
			continue
		}
		search.descend()
		search.keep()
	}
	if search.closed() || search.ctx.Err() != nil {
		return
	}
	if again := search.lower(); largestBound(again) > largestBound(search.bounds) { // with the waits of a new map
		search.bounds = again
	}
}
