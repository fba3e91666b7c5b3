package planner

import (
	"context"
	"errors"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// replicated reports that every GPU runs the whole model and that the recomputed blocks are open.
func replicated(problem *Problem) bool {
	workload := &problem.Costs.Workload
	return workload.Recompute == recomputeAuto && workload.Strategy.Traits().Replicated
}

// solveRecomputed finds the shortest step that fits, whatever the objective: there is one placement,
// and full recomputation has the lowest peak. Each recomputed block takes time, so it looks for the
// fewest with which every GPU fits. What the first blocks keep lives longest, so that equal blocks
// are best recomputed from the first on. From the last back is better where later blocks keep more
// for their time: DeepSeek-V3's experts follow dense blocks. None and all are among the choices.
func solveRecomputed(ctx context.Context, problem *Problem, settings Settings) (*Solution, error) {
	problem.Objective = Time
	blocks, tables := blocksOf(problem.Graph), tablesOf(problem, true)
	with := func(count int, last bool) (*Solution, error) {
		again := make([]bool, len(blocks))
		for i := range count {
			again[i] = true
		}
		if last {
			slices.Reverse(again)
		}
		table, err := tables(problem.Costs.Workload.Schedule, again)
		if err != nil {
			return nil, err
		}
		one := *problem
		one.Costs = table
		return Solve(ctx, one, settings)
	}
	none, failed := with(0, false)
	var large *InfeasibleError
	if failed == nil || !errors.As(failed, &large) {
		return none, failed
	}
	best, failed := with(len(blocks), false)
	if failed != nil {
		return best, failed
	}
	for _, last := range []bool{false, true} {
		low, high := 0, len(blocks) // too few, and enough
		for low+1 < high {
			middle := (low + high) / 2
			found, err := with(middle, last)
			switch {
			case err == nil:
				high = middle
				if found.Value < best.Value {
					best = found
				}
			case errors.As(err, &large):
				low = middle
			default:
				return nil, err
			}
		}
	}
	chosen := *problem
	chosen.Costs = best.Costs
	in, err := chosen.resolve()
	if err != nil {
		return nil, err
	}
	return certify(in, &instance.Answer{Claim: certificate.Claim{
		Value: best.Value, LowerBound: *devicemap.StepSeconds(problem.Costs, problem.Topology, nil), Bound: "no block recomputed", Rounding: certificate.Exact,
	}}, recomputedMethod{})
}

// blocksOf returns the units that can be recomputed, ascending.
func blocksOf(graph *modelgraph.Graph) (blocks []int) {
	for unit := range graph.Units {
		if len(graph.Units[unit].Exec) > 1 {
			blocks = append(blocks, unit)
		}
	}
	return blocks
}

// recomputedMethod names the search in a solution.
type recomputedMethod struct{ instance.Method }

// Why implements [instance.Method].
func (recomputedMethod) Why(*instance.Instance) string {
	return "as few blocks recomputed as fit, from the first on or from the last back; the bound is the step without recomputation"
}
