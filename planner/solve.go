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

// Solve returns the best map it can prove or find in the time. Where none fits,
// the closest one is returned with an [*InfeasibleError]; a
// constraint that cannot be kept is a [*ConstraintError]. Other faults are those
// of [Problem.Resolved].
func Solve(ctx context.Context, problem Problem, settings Settings) (*Solution, error) {
	problem, err := problem.Resolved()
	switch {
	case err != nil:
		return nil, err
	case problem.Diffusion != nil:
		return problem.solveDiffusion()
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
	solver := &solveCall{Problem: &problem, fitsOnly: settings.FitsOnly, limits: instance.Limits{Probes: settings.Probes, Progress: settings.Progress, Effort: limit, Below: settings.below}}
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

// solveCall is a problem as it was asked for, with the limits of the search.
type solveCall struct {
	*Problem
	limits   instance.Limits
	fitsOnly bool
}

// memory finds the smallest largest share. Where that is above a whole, the
// solution comes with an [*InfeasibleError].
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

// tightenBound raises the bound of a search that was stopped to what holds of any
// assignment and takes no search.
func tightenBound(in *instance.Instance, answer *instance.Answer) {
	if in.Piped() || in.Replicated() || costmodel.StageRulesOf(in.Costs.Workload.Runtime).Arena {
		return // which hold what layers alone do not say
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

// inOrder is the contiguous optimum; nil where pins and together-groups leave
// no contiguous map.
func (solver *solveCall) inOrder(ctx context.Context, in *instance.Instance) (*instance.Answer, error) {
	answer, err := chainmemory.Method{}.Solve(ctx, in.InOrder(), instance.Limits{Probes: solver.limits.Probes}, nil)
	if instance.Contradicts(err) {
		return nil, nil //nolint:nilnil // no map, and no fault of ours
	}
	return answer, err
}

// offload answers for a problem that does not fit: which units leave, so that
// the fewest bytes travel in a forward.
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
