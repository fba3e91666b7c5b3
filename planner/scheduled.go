package planner

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/scheduletime"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// scheduled reports a pipeline whose order of passes is open, or whose recomputed blocks are, where
// they are chosen one by one. Under torch the shortest step chooses them so for stages of one GPU.
func scheduled(problem *Problem) bool {
	workload := &problem.Costs.Workload
	switch {
	case workload.Schedule == costmodel.AutoSchedule, workload.OffloadActivations == recomputeAuto:
		return true
	case workload.Recompute != recomputeAuto || !workload.Strategy.Traits().Staged:
		return false
	}
	single := workload.DP == 0 && workload.TP == 0 && workload.CP == 0 && !workload.Uniform
	return workload.Runtime == costmodel.Devmap || workload.Runtime == torch && single && problem.Objective == Time
}

// torch is the engine whose stages recompute all blocks, none or a list.
const torch = "torch"

// solveSchedule finds the shortest step that fits. It chooses the order of a pipeline's passes, its
// cuts and the blocks that it recomputes, as far as the workload leaves them open. It solves for GPUs
// with these budgets, and predicts for those of the problem.
func solveSchedule(ctx context.Context, problem *Problem, budgets *costmodel.Topology, settings Settings) (*Solution, error) {
	workload := &problem.Costs.Workload
	if len(problem.Pins)+len(problem.Together) > 0 {
		return nil, costmodel.Refuse(costmodel.Set("schedule", workload.Schedule), "%v and %v place layers, and the search chooses all stages: leave them out, or name a schedule", costmodel.Setting{Field: "pin"}, costmodel.Setting{Field: "together"})
	}
	if !workload.Strategy.Traits().Staged || workload.Mode != costmodel.Train {
		return nil, costmodel.Refuse(costmodel.Set("schedule", workload.Schedule), "the order of passes is chosen for the training of a pipeline (%v, %v)", costmodel.Set("strategy", costmodel.Pipeline), costmodel.Set("mode", costmodel.Train))
	}
	if problem.Objective == Latency {
		return nil, costmodel.Refuse(costmodel.Set("schedule", workload.Schedule), "a request has no schedule")
	}
	if workload.OffloadActivations == recomputeAuto {
		return solveOffloaded(ctx, problem, budgets, settings)
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(settings.TimeLimit, DefaultTimeLimit))
	defer cancel()
	narrow := *problem
	narrow.Topology = budgets
	question, err := scheduleQuestion(ctx, &narrow, cmp.Or(settings.TimeLimit, DefaultTimeLimit)/32)
	if err != nil {
		return nil, err
	}
	// Orders are found with fewer micro-batches: enough for all GPUs to be busy.
	if few := 2*int64(len(budgets.Devices)) + 8; workload.MicroBatches > few {
		short := narrow
		table := *narrow.Costs
		table.Workload.Batch, table.Workload.MicroBatches = workload.Batch/workload.MicroBatches*few, few
		short.Costs = &table
		if question.Short, err = scheduleQuestion(ctx, &short, 0); err != nil {
			return nil, err
		}
	}
	best, err := scheduletime.Solve(ctx, question)
	if err != nil {
		return nil, err
	}
	if !best.Fits() {
		return tooFull(ctx, problem, best, question)
	}
	return proved(problem, question, best, ctx.Err() != nil)
}

// proved certifies a choice against the bound of all choices of a question.
func proved(problem *Problem, question *scheduletime.Question, choice *scheduletime.Choice, stopped bool) (*Solution, error) {
	numbers, err := question.Numbers()
	if err != nil {
		return nil, err
	}
	bound := numbers.Bound(choice.Step)
	if err := checkNumbers(numbers, bound); err != nil {
		return nil, err
	}
	return certifyChoice(problem, Time, choice, certificate.Claim{
		Value: choice.Step, LowerBound: bound, Bound: scheduletime.TheBound, Rounding: certificate.Sums, Stopped: stopped,
	}, scheduleMethod{offloads: problem.Costs.Workload.OffloadActivations == recomputeAuto})
}

// certifyChoice certifies the claim of a method about its choice.
func certifyChoice(problem *Problem, objective Objective, choice *scheduletime.Choice, claim certificate.Claim, method instance.Method) (*Solution, error) {
	chosen := *problem
	chosen.Costs, chosen.Objective = choice.Table, objective
	in, err := chosen.resolve()
	if err != nil {
		return nil, err
	}
	return certify(in, &instance.Answer{Map: choice.Map, Tried: choice.Tried, Claim: claim}, method)
}

// scheduleMethod names the search in a solution.
type scheduleMethod struct {
	instance.Method
	offloads bool // it chose the blocks whose activations wait in host memory
}

// Why implements [instance.Method].
func (method scheduleMethod) Why(*instance.Instance) string {
	out := "published orders and orders of its own, each with cuts moved and as few blocks recomputed as fit; the bound holds for every order, cut and choice of blocks"
	if method.offloads {
		out += "; activations leave for host memory, of every k-th block or of all, and only of blocks that have to"
	}
	return out
}

// scheduleQuestion returns what the workload leaves open. Each search of another method for a start
// has this time.
func scheduleQuestion(ctx context.Context, problem *Problem, each time.Duration) (*scheduletime.Question, error) {
	open := problem.Costs.Workload
	kinds := []costmodel.ScheduleKind{open.Schedule}
	out := &scheduletime.Question{Topology: problem.Topology}
	if open.Schedule == costmodel.AutoSchedule {
		kinds, out.Own = slices.Clone(costmodel.ScheduleKinds()), true
	}
	if open.Recompute == recomputeAuto {
		out.Blocks = blocksOf(problem.Graph)
	}
	out.Table = tablesOf(problem, len(out.Blocks) > 0)
	best := func(topology *costmodel.Topology, table *costmodel.Table, objective Objective) devicemap.Map {
		one := *problem
		one.Topology, one.Costs, one.Objective = topology, table, objective
		sol, err := Solve(ctx, one, Settings{TimeLimit: max(each, time.Millisecond)})
		if err != nil {
			return nil
		}
		return sol.Map
	}
	out.Start = func(table *costmodel.Table) devicemap.Map { return best(problem.Topology, table, Time) }
	out.Fullest = func(table *costmodel.Table) devicemap.Map {
		large := *problem.Topology
		large.Devices = slices.Clone(large.Devices)
		for i := range large.Devices {
			large.Devices[i].CapacityBytes, large.Devices[i].ReservedBytes = 1<<50, 0
		}
		return best(&large, table, Memory)
	}
	if open.Runtime == torch {
		out.Stages = func() (devicemap.Map, []bool) { return allOrNothing(ctx, problem, out.Blocks, each) }
	}
	var refused error
	for _, kind := range kinds {
		table, err := out.Table(kind, make([]bool, len(out.Blocks)))
		if err == nil {
			one := *problem
			one.Costs = table
			var in *instance.Instance
			if in, err = one.resolve(); err == nil {
				var items *instance.Items
				if items, err = in.Items(); err == nil {
					out.Items, out.Kinds = items, append(out.Kinds, kind)
				}
			}
		}
		refused = cmp.Or(refused, err)
	}
	if len(out.Kinds) == 0 {
		return nil, refused
	}
	return out, nil
}

// allOrNothing returns the best map of stages that recompute all of their blocks or none, and these
// blocks.
func allOrNothing(ctx context.Context, problem *Problem, blocks []int, limit time.Duration) (devicemap.Map, []bool) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	in, err := problem.resolve()
	if err != nil {
		return nil, nil
	}
	found, err := (&solveCall{Problem: problem, limits: instance.Limits{Effort: limit}}).solveDegrees(ctx, in)
	if err != nil {
		return nil, nil
	}
	again := make([]bool, len(blocks))
	for i, unit := range blocks {
		stage := int(found.Map[unit])
		again[i] = stage < len(found.Costs.Stages) && found.Costs.Stages[stage].Workload.Recompute == costmodel.RecomputeFull
	}
	return found.Map, again
}

// tablesOf returns a function that makes the costs of a schedule, and keeps them. If blocks are to
// be chosen, its second argument says which are recomputed.
func tablesOf(problem *Problem, blocks bool) func(costmodel.ScheduleKind, []bool) (*costmodel.Table, error) {
	type key struct{ schedule, recompute string }
	tables := map[key]*costmodel.Table{}
	return func(kind costmodel.ScheduleKind, again []bool) (*costmodel.Table, error) {
		workload := problem.Costs.Workload
		workload.Schedule, workload.VirtualStages = kind, 0
		if blocks {
			workload.Recompute = costmodel.RecomputeOf(again)
		}
		at := key{string(kind), workload.Recompute}
		if table := tables[at]; table != nil {
			return table, nil
		}
		base := at
		if kind.OwnOrder() { // orders of one form have the same costs
			base.schedule = fmt.Sprint("a form: ", kind.Split(), kind.Vee(), kind.Loops())
		}
		if tables[base] == nil {
			resolved, err := estimate.Resolve(problem.Graph, workload)
			if err != nil {
				return nil, err
			}
			table, err := estimate.Table(problem.Graph, resolved)
			if err != nil {
				return nil, err
			}
			tables[base] = table
		}
		table := *tables[base]
		table.Workload.Schedule = kind
		tables[at] = &table
		return &table, nil
	}
}

// tooFull returns the choice nearest to fitting with the error that no schedule was found. It says
// how much memory each GPU needs for one micro-batch at a time.
func tooFull(ctx context.Context, problem *Problem, best *scheduletime.Choice, question *scheduletime.Question) (*Solution, error) {
	sol, err := certifyChoice(problem, Memory, best, certificate.Claim{Value: math.NaN(), Bound: "none", Rounding: certificate.Sums}, scheduleMethod{})
	if err != nil {
		return nil, err
	}
	large := sol.tooLarge()
	large.Form = costmodel.Messagef(" as a pipeline, in any order of passes that was tried")
	if bytes, err := scheduletime.Least(ctx, question); err == nil {
		const unit = (1 << 30) / 100. // of what is printed
		least := fmt.Sprintf("%.2f GiB", math.Ceil(float64(bytes)/unit)/100)
		large.Form = costmodel.Messagef("%v (%v on each GPU is the smallest memory found with which one works)", large.Form, least)
	}
	return sol, large
}
