package stagedegrees

import (
	"context"

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

// mostLevel are its stages.
func (problem *problem) mostLevel(ctx context.Context) (*stagechain.Solution, error) {
	return stagechain.Solve(ctx, problem.chain(1, 0, problem.share))
}
