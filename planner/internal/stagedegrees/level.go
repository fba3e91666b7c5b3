package stagedegrees

import (
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/solve/stagechain"
)

// level is the smallest largest share.
func (problem *problem) level(ctx context.Context) (*instance.Answer, error) {
	found, err := problem.mostLevel(ctx)
	if err != nil {
		return nil, problem.none(err)
	}
	out := &instance.Answer{
		Claim:  certificate.Claim{Value: found.Value, LowerBound: found.LowerBound, Bound: "search", Rounding: certificate.Exact, Stopped: found.Early()},
		Proved: found.Optimal(),
	}
	out.Map, out.Costs = problem.placed(problem.stagesOf(found.Stages, problem.share))
	return out, nil
}

// mostLevel are its stages. The search begins with the best ones that all have as
// many GPUs, which are found in a small part of the time.
func (problem *problem) mostLevel(ctx context.Context) (*stagechain.Solution, error) {
	chain := problem.chain(1, 0, problem.share)
	half, cancel := instance.HalfOf(ctx)
	chain.Start = problem.sameSizes(half, chain)
	cancel()
	return stagechain.Solve(ctx, chain)
}

// sameSizes is the pipeline of the least largest share whose stages all have as
// many GPUs, nil if there is none.
func (problem *problem) sameSizes(ctx context.Context, chain *stagechain.Problem) (stages []stagechain.Stage) {
	value := math.Inf(1)
	for at, gpus := range slices.Backward(chain.Sizes) { // the ones of few stages first: they take least time
		if chain.Devices%gpus != 0 || chain.Devices/gpus > chain.MostStages {
			continue
		}
		one := *chain
		one.Sizes = chain.Sizes[at : at+1]
		one.Time = func(a, b, _, behind int) float64 { return chain.Time(a, b, at, behind) }
		found, err := stagechain.Solve(ctx, &one)
		if err != nil || found.Value >= value {
			continue
		}
		stages, value = found.Stages, found.Value
		for i := range stages {
			stages[i].Size = at
		}
	}
	return stages
}
