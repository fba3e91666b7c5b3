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
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// These engines require the same degrees in all stages, and identical GPUs.
const (
	megatron   = "megatron"
	torchtitan = "torchtitan"
)

// uniform reports that all stages have one form, required by the engine or by the workload.
func uniform(workload *costmodel.Workload) bool {
	return workload.Runtime == megatron || workload.Runtime == torchtitan || workload.Uniform
}

// gridForm is one form for all stages, with a lower bound of its value.
type gridForm struct {
	workload costmodel.Workload
	table    *costmodel.Table
	below    float64
}

// solveUniform finds the best degrees that all stages share, and the best cut for them. It tries
// forms in the order of their bounds. It stops when the next bound is no better.
func (solver *solveCall) solveUniform(ctx context.Context, in *instance.Instance) (*Solution, error) {
	if len(in.Pins) > 0 {
		return nil, costmodel.Refuse(costmodel.Setting{Field: "pin"}, "a pin names a device, and which GPUs a stage has is open: give degrees that are numbers")
	}
	forms, all, err := solver.gridForms(ctx)
	if err != nil {
		return nil, err
	}
	search := formSearch{solveCall: solver, below: math.Inf(1)}
	for i := range forms {
		if !search.try(ctx, &forms[i]) {
			break
		}
	}
	best := search.best
	if best == nil {
		return nil, cmp.Or(search.failed, ctx.Err())
	}
	if !all { // the time ended before all forms had a bound
		search.below, search.stopped = 0, true
	}
	best.bounded(search.below, search.stopped, search.looked, len(forms))
	chosen := &best.Costs.Workload
	if large := (*InfeasibleError)(nil); errors.As(search.failed, &large) {
		large.Proved = !search.stopped && search.below > 1
		large.Form = costmodel.Messagef(" with any degrees that all stages share (closest: %v %v %v %v)",
			costmodel.Set("dp", chosen.DP.Count()), costmodel.Set("tp", chosen.TP.Count()), costmodel.Set("cp", chosen.CP.Count()), costmodel.Set("pp", chosen.PP.Count()))
	}
	if search.failed == nil {
		solver.compareForms(ctx, in, best)
		if chosen.SequenceParallel && !solver.Costs.Workload.SequenceParallel {
			best.Warnings = append(best.Warnings, costmodel.Messagef("the plan has %v: Megatron trains experts under %v with it alone", costmodel.Setting{Field: "sequence_parallel"}, costmodel.Set("tp", chosen.TP)))
		}
	}
	return best, search.failed
}

// asked returns the workload whose degrees are chosen. Experts under Megatron's tensor parallelism
// need sequence parallelism (core/transformer/moe/moe_layer.py).
func (solver *solveCall) asked() costmodel.Workload {
	open := solver.Costs.Workload
	if open.Runtime == megatron && open.TP == costmodel.AutoDegree {
		open.SequenceParallel = open.SequenceParallel || slices.ContainsFunc(solver.Graph.Layers, func(layer modelgraph.Layer) bool {
			_, experts := layer.Op.(modelgraph.MoE)
			return experts
		})
	}
	return open
}

// formSearch is the state of the search: the best solution, why it does not fit, and a bound.
type formSearch struct {
	*solveCall

	best    *Solution
	failed  error
	below   float64
	looked  int
	stopped bool
}

// try finds the best cut of a form. It returns false if no later form is better, or the time has
// ended.
func (search *formSearch) try(ctx context.Context, form *gridForm) bool {
	if search.best != nil && form.below >= search.enough() {
		return false
	}
	if search.stopped = search.best != nil && ctx.Err() != nil; search.stopped {
		search.below = min(search.below, form.below)
		return false
	}
	sol, err := search.solveForm(ctx, form)
	search.looked++
	var large *InfeasibleError
	if err != nil && !errors.As(err, &large) || sol == nil {
		if search.best == nil {
			search.failed = err
		}
		return true
	}
	switch {
	case err == nil || search.Objective != Time:
		search.below = min(search.below, max(form.below, sol.LowerBound))
	case !large.Proved: // a cut of this form may fit
		search.below = min(search.below, form.below)
	}
	if better(sol, search.best, err, search.failed) {
		search.best, search.failed = sol, err
	}
	return true
}

// enough returns the bound from which on no form is better than the best one. That is its value, or
// its largest share if it does not fit.
func (search *formSearch) enough() float64 {
	switch {
	case search.failed == nil:
		return search.best.Value
	case cmp.Or(search.Objective, Memory) == Memory:
		return max(1, search.best.LargestShare)
	}
	return math.Inf(1)
}

// better reports that sol is better than best. A solution that fits is better than one that does
// not.
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

// solveForm returns the best cut of a form. After a form that fits, it takes half of the time.
func (search *formSearch) solveForm(ctx context.Context, form *gridForm) (*Solution, error) {
	problem, limit := *search.Problem, DefaultTimeLimit
	problem.Workload, problem.Costs = form.workload, form.table
	if end, ok := ctx.Deadline(); ok {
		limit = max(time.Until(end), time.Millisecond)
	}
	if search.best != nil && search.failed == nil {
		limit /= 2
	}
	return Solve(ctx, problem, Settings{TimeLimit: limit, Probes: search.limits.Probes, FitsOnly: search.fitsOnly})
}

// bounded sets the solution's bound to that of all forms.
func (solution *Solution) bounded(below float64, stopped bool, looked, all int) {
	solution.LowerBound = min(below, solution.Value)
	if solution.LowerBound < solution.Value {
		solution.Status, solution.Bound = Feasible, "all degrees"
	}
	if stopped {
		solution.Status = LimitReached
	}
	solution.EvenProved = solution.EvenProved && solution.Status == Optimal
	solution.Method = fmt.Sprintf("%s; of %d forms that all stages may have, %d were cut, and bounds leave out the others", solution.Method, all, looked)
}

// gridForms returns the tables of all degrees that the model, the batch and the GPUs allow, the
// least bound first. all reports that none is left out.
func (solver *solveCall) gridForms(ctx context.Context) (out []gridForm, all bool, err error) {
	var refused error
	all = true
	full := false // a form that cannot fit was left out
	for _, workload := range grid(solver.asked(), int64(len(solver.Topology.Devices)), int64(len(solver.Graph.Units))) {
		if all = len(out) == 0 && !full || ctx.Err() == nil; !all {
			break
		}
		var table *costmodel.Table
		resolved, err := estimate.Resolve(solver.Graph, workload)
		if err == nil {
			table, err = estimate.Table(solver.Graph, resolved)
		}
		if err != nil {
			refused = err
			continue
		}
		below := solver.leastOf(table)
		if solver.fitsOnly && leastShare(table, table.Folded(solver.Topology)) > 1+instance.Tolerance {
			full = true
			continue
		}
		if !math.IsInf(below, 1) || len(out) == 0 {
			out = append(out, gridForm{resolved, table, below})
		}
	}
	switch {
	case len(out) == 0 && full:
		return nil, all, &InfeasibleError{Proved: all}
	case len(out) == 0:
		return nil, false, fmt.Errorf("no degrees that all stages can have: %w", cmp.Or(refused, error(costmodel.Refuse(costmodel.Set("gpus", len(solver.Topology.Devices)),
			"no product of degrees is the number of GPUs with a batch that the replicas share evenly (another %v, or fewer %v, may work)", costmodel.Setting{Field: "batch"}, costmodel.Setting{Field: "micro_batches"}))))
	}
	slices.SortStableFunc(out, func(one, other gridForm) int { return cmp.Compare(one.below, other.below) })
	return out, all, nil
}

// grid lists the workloads of all degrees whose product is the number of GPUs. The step stays the
// same: open replicas divide the batch into equal parts.
func grid(open costmodel.Workload, gpus, units int64) (out []costmodel.Workload) {
	recomputes := []string{open.Recompute}
	if open.Recompute == recomputeAuto {
		recomputes = []string{costmodel.RecomputeNone, costmodel.RecomputeFull}
	}
	rows, most, stages := max(1, open.Batch/max(1, open.MicroBatches)), units, open.PP
	if open.Runtime != megatron && open.Runtime != torchtitan { // PP follows from the other degrees
		stages = costmodel.AutoDegree
	}
	if open.Runtime != megatron { // torch's schedules allow at most one stage per micro-batch
		most = min(units, max(1, open.MicroBatches))
	}
	for _, tp := range degrees(open.TP, gpus) {
		for _, cp := range degrees(open.CP, gpus/tp) {
			for _, pp := range degrees(stages, gpus/(tp*cp)) {
				dp := gpus / (tp * cp * pp)
				if pp > most || !shares(open.DP, dp, rows) {
					continue
				}
				shared := dp * cp
				if open.Runtime == torchtitan {
					shared *= tp
				}
				for _, ep := range degrees(open.EP, shared) {
					for _, recompute := range recomputes {
						out = append(out, formOf(open, tp, cp, pp, dp, ep, recompute))
					}
				}
			}
		}
	}
	return out
}

// shares reports that replicas is the requested degree. For an open degree it reports that the
// replicas divide the rows equally.
func shares(asked costmodel.Degree, replicas, rows int64) bool {
	if asked == costmodel.AutoDegree {
		return rows%replicas == 0
	}
	return asked == 0 || replicas == asked.Count()
}

// formOf returns the workload with these degrees.
func formOf(open costmodel.Workload, tp, cp, pp, dp, ep int64, recompute string) costmodel.Workload {
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
		one.PP = 0 // the product determines this degree
	}
	return one
}

// degrees lists the values of a degree that divide so many GPUs.
func degrees(degree costmodel.Degree, within int64) (out []int64) {
	for count := int64(1); count <= within; count++ {
		if within%count == 0 && (degree == costmodel.AutoDegree || count == degree.Count()) {
			out = append(out, count)
		}
	}
	return out
}

// leastOf returns a lower bound for the value of any cut of a table; +Inf: no cut fits. The slowest
// of p stages runs m micro-batches, and the first of these also runs through the other stages: (m +
// p − 1)/p of all work. Interleaved stages do not wait for a whole stage.
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

// leastShare returns a lower bound of the largest share: the mean of the stages, or the largest
// unit.
func leastShare(table *costmodel.Table, folded *costmodel.Topology) float64 {
	var all, largest, budget int64
	overhead := int64(math.MaxInt64)
	for i := range table.Units {
		unit := &table.Units[i]
		bytes := unit.Params + unit.Buffers + unit.OptimizerState + unit.ResidentGrads
		if !unit.Recompute {
			for k := range unit.Layers {
				bytes += unit.Layers[k].Saved
			}
		}
		all, largest = all+bytes, max(largest, bytes)
	}
	for i := range folded.Devices {
		budget = max(budget, folded.Devices[i].Budget())
		overhead = min(overhead, table.Overhead(i, &folded.Devices[i]))
	}
	return (max(float64(all)/float64(len(folded.Devices)), float64(largest)) + float64(overhead)) / float64(budget)
}

// mostCompared is the most GPUs for compareForms, whose search is slow.
const mostCompared = 32

// compareForms adds a warning with the cost of one form for all stages. It compares with stages
// that choose their forms.
func (solver *solveCall) compareForms(ctx context.Context, in *instance.Instance, best *Solution) {
	free := solver.asked()
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
		return // there are several hosts, or too little time
	}
	best.Warnings = append(best.Warnings, costmodel.Messagef("one form for all stages costs %.1f %%: stages that choose their forms reach %.4g, and these have %.4g (no forms are below %.4g)",
		100*(best.Value/other.Value-1), other.Value, best.Value, other.LowerBound))
}

// sameGPUs refuses GPUs that differ in more than their hosts, for engines whose stages share their
// degrees.
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
