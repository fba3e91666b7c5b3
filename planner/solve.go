package planner

import (
	"cmp"
	"context"
	"errors"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/internal/assignmemory"
	"github.com/devmap-dev/devmap/planner/internal/chainmemory"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/offload"
)

// Solve returns the best map that it finds in the time, with its bound. If no map fits, it returns
// the closest one with an [*InfeasibleError]. A constraint that no map keeps is a
// [*ConstraintError]. Other errors are those of [Problem.Resolved].
func Solve(ctx context.Context, problem Problem, settings Settings) (*Solution, error) {
	sol, err := solve(ctx, problem, settings)
	if err == nil {
		err = sol.hosted()
	}
	return sol, err
}

func solve(ctx context.Context, problem Problem, settings Settings) (*Solution, error) {
	problem, err := problem.Resolved()
	switch {
	case err != nil:
		return nil, err
	case problem.Diffusion != nil:
		return problem.solveDiffusion()
	}
	switch {
	case scheduled(&problem):
		return solveSchedule(ctx, &problem, problem.Topology, settings)
	case replicated(&problem):
		return solveRecomputed(ctx, &problem, settings)
	}
	if err := sameGPUs(&problem.Costs.Workload, problem.Topology); err != nil {
		return nil, err
	}
	if folded := problem.Costs.Folded(problem.Topology); folded != problem.Topology {
		return solveStages(ctx, &problem, folded, settings)
	}
	in, err := problem.resolve()
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(settings.TimeLimit, DefaultTimeLimit)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	solver := &solveCall{Problem: &problem, fitsOnly: settings.FitsOnly, limits: instance.Limits{Probes: settings.Probes, Progress: settings.Progress, Effort: limit, Below: settings.below, Step: settings.step, Quick: settings.one}}
	var sol *Solution
	switch {
	case open(in.Costs) && uniform(&in.Costs.Workload):
		return solver.solveUniform(ctx, in)
	case open(in.Costs):
		return solver.solveDegrees(ctx, in)
	}
	if in.Objective == instance.Time {
		sol, err = solver.time(ctx, in)
	} else {
		sol, err = solver.memory(ctx, in)
		if err != nil && in.Offload != "" {
			sol, err = solver.offload(ctx, in, sol, err)
		}
		if err == nil {
			err = in.Linked(sol.Map)
		}
	}
	return sol, in.Contradicted(err)
}

// solveCall is the caller's problem with the limits of the search.
type solveCall struct {
	*Problem
	limits   instance.Limits
	fitsOnly bool
}

// memory minimizes the largest share. If that is above 1, it returns the solution with an
// [*InfeasibleError].
func (solver *solveCall) memory(ctx context.Context, in *instance.Instance) (*Solution, error) {
	var start *instance.Answer
	if in.AnyAssignment {
		var err error
		if start, err = solver.inOrder(ctx, in); err != nil {
			return nil, err
		}
	}
	method, err := methodFor(in)
	if err != nil {
		return nil, err
	}
	answer, err := method.Solve(ctx, in, solver.limits, start)
	if err != nil {
		return nil, err
	}
	if answer.Stopped {
		tightenBound(in, answer)
	}
	sol, err := certify(in, answer, method)
	if err == nil && sol.LargestShare > 1 {
		err = solver.infeasible(ctx, in, method, sol)
	}
	return sol, err
}

// tightenBound raises the bound of a stopped search to bounds for any assignment. They need no
// search.
func tightenBound(in *instance.Instance, answer *instance.Answer) {
	if in.Piped() || in.Replicated() || costmodel.StageRulesOf(in.Costs.Workload.Runtime).Arena {
		return // memory there depends on more than the units
	}
	bounds, err := assignmemory.Arguments(in)
	if err != nil {
		return
	}
	for _, bound := range bounds {
		if bound.Value > answer.LowerBound {
			answer.LowerBound, answer.Bound = min(bound.Value, answer.Value), bound.Name
		}
	}
}

// inOrder returns the contiguous optimum; nil if pins and together-groups allow no contiguous map.
func (solver *solveCall) inOrder(ctx context.Context, in *instance.Instance) (*instance.Answer, error) {
	answer, err := chainmemory.Method{}.Solve(ctx, in.InOrder(), instance.Limits{Probes: solver.limits.Probes}, nil)
	if instance.Contradicts(err) {
		return nil, nil //nolint:nilnil // no map, and no fault of ours
	}
	return answer, err
}

// offload chooses the units that leave if the problem does not fit. They are the fewest bytes per
// forward.
func (solver *solveCall) offload(ctx context.Context, in *instance.Instance, best *Solution, failed error) (*Solution, error) {
	var large *InfeasibleError
	if !errors.As(failed, &large) {
		return best, failed
	}
	method := offload.Method{}
	answer, err := method.Solve(ctx, in, solver.limits, nil)
	switch {
	case errors.Is(err, instance.ErrNone):
		large.Offload = answer.Notes[0]
		large.Proved = large.Proved && answer.Proved
		return best, failed
	case err != nil:
		return nil, err
	}
	return certify(in, answer, method)
}
