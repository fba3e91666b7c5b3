package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Engines whose stages all have the same degrees, and identical GPUs.
const (
	megatron   = "megatron"
	torchtitan = "torchtitan"
)

// uniform reports stages that all have one form: the engine has no other, or it was
// asked for.
func uniform(workload *costmodel.Workload) bool {
	return workload.Runtime == megatron || workload.Runtime == torchtitan || workload.Uniform
}

// gridForm is a form that all stages may have, with a bound on its value.
type gridForm struct {
	workload costmodel.Workload
	table    *costmodel.Table
	below    float64
}

// solveUniform finds the best degrees that all stages share, with the best cut. It
// takes forms in the order of a bound on their values, and ends where the bound of
// the next one is no better than what was found.
func (solver *solveCall) solveUniform(ctx context.Context, in *instance.Instance) (*Solution, error) {
	if len(in.Pins) > 0 {
		return nil, costmodel.Refuse(costmodel.Setting{Field: "pin"}, "a pin names a device, and which GPUs a stage has is open: give degrees that are numbers")
	}
	forms, err := solver.gridForms(ctx)
	if err != nil {
		return nil, err
	}
	var best *Solution
	var failed error
	var looked int
	below, stopped := math.Inf(1), false
	for i := range forms {
		form := &forms[i]
		if best != nil && failed == nil && form.below >= best.Value {
			break
		}
		if stopped = best != nil && ctx.Err() != nil; stopped {
			below = min(below, form.below)
			break
		}
		sol, err := solver.solveForm(ctx, form, best, failed)
		looked++
		var large *InfeasibleError
		if err != nil && !errors.As(err, &large) || sol == nil {
			if best == nil {
				failed = err
			}
			continue
		}
		if err == nil || sol.Objective != Time {
			below = min(below, max(form.below, sol.LowerBound))
		}
		if better(sol, best, err, failed) {
			best, failed = sol, err
		}
	}
	if best == nil {
		return nil, cmp.Or(failed, ctx.Err())
	}
	best.bounded(below, stopped, looked, len(forms))
	if failed == nil {
		solver.compareForms(ctx, in, best)
	}
	return best, failed
}

// better reports that a solution is better than another: one that fits before one that
// does not.
func better(sol, best *Solution, err, failed error) bool {
	switch {
	case best == nil:
		return true
	case (err == nil) != (failed == nil):
		return err == nil
	case err != nil:
		return sol.LargestShare < best.LargestShare
	}
	return sol.Value < best.Value || sol.Value == best.Value && sol.LargestShare < best.LargestShare
}

// solveForm is the best cut of a form, for as long as half of the time that is left.
func (solver *solveCall) solveForm(ctx context.Context, form *gridForm, best *Solution, failed error) (*Solution, error) {
	problem := *solver.Problem
	problem.Workload, problem.Costs = form.workload, form.table
	limit := DefaultTimeLimit
	if end, ok := ctx.Deadline(); ok {
		limit = max(time.Until(end), time.Millisecond)
	}
	if best != nil && failed == nil {
		limit /= 2
	}
	return Solve(ctx, problem, Settings{TimeLimit: limit, Probes: solver.limits.Probes})
}

// bounded gives the solution the bound of all forms.
func (sol *Solution) bounded(below float64, stopped bool, looked, all int) {
	sol.LowerBound = min(below, sol.Value)
	if sol.LowerBound < sol.Value {
		sol.Status, sol.Bound = Feasible, "all degrees"
	}
	if stopped {
		sol.Status = LimitReached
	}
	sol.EvenProved = sol.EvenProved && sol.Status == Optimal
	sol.Method = fmt.Sprintf("%s; of %d forms that all stages may have, %d were cut, and bounds leave out the others", sol.Method, all, looked)
}

// gridForms are the tables of all degrees that the model, the batch and the GPUs take,
// the least bound first.
func (solver *solveCall) gridForms(ctx context.Context) ([]gridForm, error) {
	var out []gridForm
	var refused error
	for _, workload := range grid(solver.Costs.Workload, int64(len(solver.Topology.Devices)), int64(len(solver.Graph.Units))) {
		if len(out) > 0 && ctx.Err() != nil {
			break
		}
		resolved, err := estimate.Resolve(solver.Graph, workload)
		if err != nil {
			refused = err
			continue
		}
		table, err := estimate.Table(solver.Graph, resolved)
		if err != nil {
			refused = err
			continue
		}
		if below := solver.leastOf(table); !math.IsInf(below, 1) || len(out) == 0 {
			out = append(out, gridForm{resolved, table, below})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no degrees that all stages can have: %w", cmp.Or(refused, error(costmodel.Refuse(costmodel.Set("gpus", len(solver.Topology.Devices)),
			"no product of degrees is the number of GPUs with a batch that the replicas share evenly (another %v, or fewer %v, may work)", costmodel.Setting{Field: "batch"}, costmodel.Setting{Field: "micro_batches"}))))
	}
	slices.SortStableFunc(out, func(one, other gridForm) int { return cmp.Compare(one.below, other.below) })
	return out, nil
}

// grid lists the workloads of all degrees whose product is the number of GPUs, with the
// same step: open replicas take equal parts of the batch.
func grid(open costmodel.Workload, gpus, units int64) (out []costmodel.Workload) {
	recomputes := []string{open.Recompute}
	if open.Recompute == recomputeAuto {
		recomputes = []string{costmodel.RecomputeNone, costmodel.RecomputeFull}
	}
	if uniformTorch := open.Runtime != megatron && open.Runtime != torchtitan; uniformTorch && open.PP == 0 {
		open.PP = costmodel.AutoDegree
	}
	rows := max(1, open.Batch/max(1, open.MicroBatches))
	for _, tp := range degrees(open.TP, gpus) {
		for _, cp := range degrees(open.CP, gpus/tp) {
			for _, pp := range degrees(open.PP, gpus/(tp*cp)) {
				dp := gpus / (tp * cp * pp)
				fixed := open.DP != costmodel.AutoDegree && open.DP != 0 && dp != open.DP.Count()
				if pp > min(units, max(1, open.MicroBatches)) || fixed || open.DP == costmodel.AutoDegree && rows%dp != 0 {
					continue
				}
				for _, ep := range degrees(open.EP, dp*cp) {
					for _, recompute := range recomputes {
						one := open
						one.TP, one.CP, one.PP, one.DP, one.EP = costmodel.Degree(tp), costmodel.Degree(cp), costmodel.Degree(pp), costmodel.Degree(dp), costmodel.Degree(ep)
						one.Recompute, one.SequenceParallel = recompute, open.SequenceParallel && tp > 1
						if open.DP == costmodel.AutoDegree {
							one.Batch = open.Batch / dp
						}
						if open.ShardDegree > 1 { // it followed degrees that were open
							one.ShardDegree = 0
						}
						if open.Runtime != megatron && open.Runtime != torchtitan {
							one.PP = 0 // the product says it
						}
						out = append(out, one)
					}
				}
			}
		}
	}
	return out
}

// degrees are the values of a degree within so many GPUs.
func degrees(degree costmodel.Degree, within int64) (out []int64) {
	if degree != costmodel.AutoDegree {
		if count := degree.Count(); within%count == 0 {
			out = append(out, count)
		}
		return out
	}
	for count := int64(1); count <= within; count++ {
		if within%count == 0 {
			out = append(out, count)
		}
	}
	return out
}

// leastOf bounds the value of any cut of a table from below; +Inf: no cut fits. Of the
// stages, the largest is no less than their mean, and holds a micro-batch of its units'
// activations. The slowest of p stages runs m micro-batches, and the first of these
// runs through the others, too: (m + p − 1)/p of all work. Interleaved stages need
// not wait for whole stages.
func (solver *solveCall) leastOf(table *costmodel.Table) float64 {
	folded := table.Folded(solver.Topology)
	stages := float64(len(folded.Devices))
	share := leastShare(table, folded)
	switch {
	case cmp.Or(solver.Objective, Memory) == Memory:
		return share
	case share > 1:
		return math.Inf(1)
	}
	var seconds float64
	for unit := range table.Units {
		of := steptime.Unit(table, folded, 0, unit)
		seconds += of.Forward + of.Backward
	}
	runs := float64(max(1, table.Workload.MicroBatches))
	if table.Workload.Schedule != costmodel.Interleaved {
		runs += stages - 1
	}
	return seconds * runs / stages * (1 - instance.Tolerance)
}

// leastShare is the mean share of the stages, or that of the largest unit.
func leastShare(table *costmodel.Table, folded *costmodel.Topology) float64 {
	var all, largest, budget int64
	for i := range table.Units {
		unit := &table.Units[i]
		held := unit.Params + unit.Buffers + unit.OptimizerState + unit.ResidentGrads
		if !unit.Recompute {
			for k := range unit.Layers {
				held += unit.Layers[k].Saved
			}
		}
		all, largest = all+held, max(largest, held)
	}
	for i := range folded.Devices {
		budget = max(budget, folded.Devices[i].Budget())
	}
	return max(float64(all)/float64(len(folded.Devices)), float64(largest)) / float64(budget)
}

// mostCompared bounds the GPUs whose stages are also planned in forms of their own: that
// search takes the square of units and GPUs.
const mostCompared = 32

// compareForms says what one form for all stages costs, against stages that choose
// their forms. These have the engine's costs, whether it runs them or not.
func (solver *solveCall) compareForms(ctx context.Context, in *instance.Instance, best *Solution) {
	free := solver.Costs.Workload
	if len(solver.Topology.Devices) > mostCompared || free.CP > 1 || free.EP > 1 || free.DP != costmodel.AutoDegree {
		return
	}
	free.Uniform, free.PP, free.CP, free.EP = false, 0, 0, 0
	problem, costs, stages := *solver.Problem, *solver.Costs, *in
	costs.Workload = free
	problem.Costs, stages.Costs = &costs, &costs
	half, cancel := instance.HalfOf(ctx)
	defer cancel()
	open := solveCall{Problem: &problem, limits: solver.limits}
	other, err := open.solveDegrees(half, &stages)
	if err != nil || other.Value > best.Value {
		return // on several hosts, or in no time
	}
	best.Warnings = append(best.Warnings, costmodel.Messagef("one form for all stages costs %.1f %%: stages that choose their forms reach %.4g, and these have %.4g (no forms are below %.4g)",
		100*(best.Value/other.Value-1), other.Value, best.Value, other.LowerBound))
}

// sameGPUs refuses GPUs that differ but in their hosts, under engines that cut all
// stages alike.
func sameGPUs(workload *costmodel.Workload, topology *costmodel.Topology) error {
	if !uniform(workload) || !workload.Strategy.Traits().Staged {
		return nil
	}
	first := topology.Devices[0]
	for i, device := range topology.Devices {
		device.Host = first.Host
		if device != first {
			return costmodel.Refuse(costmodel.Set("runtime", workload.Runtime), "its ranks need the same GPUs, and device %d (%s, %v) differs from device 0 (%s, %v): plan equal GPUs, or use %v without %v",
				i, device.Name, costmodel.Bytes(device.Budget()), first.Name, costmodel.Bytes(first.Budget()), costmodel.Set("runtime", "torch"), costmodel.Setting{Field: "uniform"})
		}
	}
	return nil
}
