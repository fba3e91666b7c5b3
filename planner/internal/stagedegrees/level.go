package stagedegrees

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/solve/stagechain"
)

// level is the smallest largest share. Where the time ends before all mixtures
// of forms were looked at, it is no more than that of the best stages that all
// have the same GPUs, which are found first: of hundreds of GPUs the first
// mixtures are far from level.
func (problem *problem) level(ctx context.Context) (*instance.Answer, error) {
	cost := func(form, a, b int, after stagechain.After) float64 { return problem.share(form, a, b, after.Stages) }
	chain := problem.chain(1, 0, cost)
	half, cancel := instance.HalfOf(ctx)
	defer cancel()
	part, end := instance.HalfOf(half)
	alike, value := problem.alike(part, chain)
	end()
	found, err := stagechain.Solve(ctx, chain)
	out := &instance.Answer{Claim: certificate.Claim{Value: value, Bound: "search", Rounding: certificate.Exact, Stopped: true}}
	switch {
	case err == nil:
		out.Value, out.LowerBound, out.Stopped, out.Proved = found.Value, found.LowerBound, found.Early(), found.Optimal()
		if value >= found.Value {
			alike = found.Stages
		} else {
			out.Value, out.Proved = value, false
		}
	case alike == nil || errors.Is(err, stagechain.ErrNone):
		return nil, problem.none(err)
	}
	out.Map, out.Costs = problem.placed(problem.stagesOf(alike, cost))
	return out, nil
}

// alike is the pipeline of the least largest cost whose stages all have the same
// degrees, nil where there is none: for each degree the problem of that one
// alone, which is a small part of the whole.
func (problem *problem) alike(ctx context.Context, chain *stagechain.Problem) (stages []stagechain.Stage, value float64) {
	value = math.Inf(1)
	for at, degree := range slices.Backward(chain.Degrees) { // the ones of few stages first: they take least time
		if count := chain.Devices / degree.Devices(); chain.Devices%degree.Devices() != 0 || count > chain.MostStages {
			continue
		}
		one := *chain
		one.Degrees = chain.Degrees[at : at+1]
		one.Time = func(a, b, _ int, after stagechain.After) float64 { return chain.Time(a, b, at, after) }
		found, err := stagechain.Solve(ctx, &one)
		if err != nil || found.Value >= value {
			continue
		}
		stages, value = found.Stages, found.Value
		for i := range stages {
			stages[i].Degree = at
		}
	}
	return stages, value
}
