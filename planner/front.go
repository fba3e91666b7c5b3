package planner

import (
	"cmp"
	"context"
	"errors"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Front lists the maps for which no map is better in both step time and largest share. The shortest
// step comes first.
type Front struct {
	Points []*Solution
	// Complete: the sweep ended and every point is proved optimal. No other map is as good in both
	// step and largest share.
	Complete bool
}

// SolveFront returns the front of step time and largest share. It finds the shortest step that
// fits, then the shortest with every share below that map's largest, and so on. This is the
// ε-constraint method (Haimes, Lasdon and Wismer, IEEE Trans. SMC 1, 1971). Settings.TimeLimit
// limits the whole sweep. Errors are as of [Solve].
func SolveFront(ctx context.Context, problem Problem, settings Settings) (*Front, error) {
	settings.TimeLimit = cmp.Or(settings.TimeLimit, DefaultTimeLimit)
	ctx, cancel := context.WithTimeout(ctx, settings.TimeLimit)
	defer cancel()
	problem.Objective = Time
	problem, err := problem.Resolved()
	switch {
	case err != nil:
		return nil, err
	case problem.Diffusion != nil:
		return nil, timedPhases(problem.Objective)
	case scheduled(&problem):
		return frontOfSchedules(ctx, &problem)
	case open(problem.Costs):
		return nil, &costmodel.FieldError{Msg: costmodel.Messagef("a front is searched among maps of stages of one form: %v goes with degrees that are numbers", costmodel.Setting{Field: "objective", Value: "front"})}
	}
	if folded := problem.Costs.Folded(problem.Topology); folded != problem.Topology {
		return frontOfStages(ctx, &problem, folded, settings)
	}
	if problem.Unconstrained && !problem.Costs.Workload.Strategy.Traits().Staged && !problem.Costs.Workload.Strategy.Traits().Replicated {
		return nil, &costmodel.FieldError{Msg: costmodel.Messagef("the front is searched among contiguous maps: %v goes with %v or %v",
			costmodel.Setting{Field: "contiguous", Value: "false"}, costmodel.Setting{Field: "objective", Value: string(Memory)}, Time)}
	}
	first, err := Solve(ctx, problem, settings)
	if err != nil {
		return nil, err
	}
	out := &Front{Points: []*Solution{first}, Complete: first.proved()}
	if first.Map == nil { // every GPU runs the whole model: there is no choice
		return out, nil
	}
	if err := out.sweep(ctx, &problem); err != nil {
		return nil, err
	}
	return out, nil
}

// sweep adds points until none is left or the time ends. Each point is the shortest step with every
// share below the last point's largest.
func (front *Front) sweep(ctx context.Context, problem *Problem) error {
	in, err := problem.resolve()
	if err != nil {
		return err
	}
	method, err := methodFor(in)
	if err != nil {
		return err
	}
	for last := front.Points[0]; ctx.Err() == nil; front.add(last) {
		under := in.Within(in.CapsBelow(last.LargestShare))
		answer, err := method.Solve(ctx, under, instance.Limits{}, nil)
		if errors.Is(err, instance.ErrNone) {
			front.Complete = front.Complete && ctx.Err() == nil && answer.Proved
			return nil
		}
		if err != nil {
			return err
		}
		if last, err = certify(in, answer, method); err != nil {
			return err
		}
	}
	front.Complete = false
	return nil
}

func (solution *Solution) proved() bool { return solution.Status == Optimal && solution.EvenProved }

// add appends a point, unless the host's memory is too small for it. It removes earlier points whose
// step is not shorter: a stopped search can leave them.
func (front *Front) add(solution *Solution) {
	if solution.hosted() != nil {
		front.Complete = false
		return
	}
	front.Complete = front.Complete && solution.proved()
	for count := len(front.Points); count > 0 && front.Points[count-1].Value >= solution.Value; count = len(front.Points) {
		front.Points = front.Points[:count-1]
	}
	front.Points = append(front.Points, solution)
}
