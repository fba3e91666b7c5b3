package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// uniform reports that all stages have one form, required by the engine or by the workload.
func uniform(workload *costmodel.Workload) bool {
	return workload.Runtime == megatron || workload.Runtime == torchtitan || workload.Uniform
}

// gridForm is one form for all stages, with a lower bound of its value.
type gridForm struct {
	workload costmodel.Workload
	below    float64
}

// solveUniform finds the best degrees that all stages share, and the best cut for them. It tries
// forms in the order of their bounds. It stops when the next bound is no better.
func (solver *solveCall) solveUniform(ctx context.Context, in *instance.Instance) (*Solution, error) {
	if len(in.Pins) > 0 {
		return nil, costmodel.Refuse(costmodel.Setting{Field: "pin"}, "a pin names a device, and which GPUs a stage has is open: give degrees that are numbers")
	}
	forms, all, err := solver.gridForms(ctx, shortened(solver.Graph))
	if err != nil {
		return nil, err
	}
	search := formSearch{solveCall: solver, below: math.Inf(1)}
	for i := range forms {
		if !search.try(ctx, &forms[i]) {
			break
		}
	}
	best, large := search.best, search.unfit(all)
	if large != nil && solver.Objective == Time && !solver.fitsOnly && ctx.Err() == nil {
		problem := *solver.Problem // bounds of time say nothing of what is closest
		problem.Objective = Memory
		return (&solveCall{Problem: &problem, limits: solver.limits}).solveUniform(ctx, in.For(instance.Memory))
	}
	if best == nil {
		return nil, cmp.Or(search.failed, ctx.Err(), error(large))
	}
	search.bounded(all, len(forms))
	chosen := &best.Costs.Workload
	if large != nil {
		large.Proved = !search.stopped && search.below > 1
		large.Form = costmodel.Messagef(" with any degrees that all stages share (closest: %v)", solver.closest(chosen))
	}
	if search.failed == nil {
		solver.compareForms(ctx, in, best)
		if chosen.SequenceParallel && !solver.Costs.Workload.SequenceParallel {
			best.Warnings = append(best.Warnings, costmodel.Messagef("the plan has %v: Megatron trains experts under %v with it alone", costmodel.Setting{Field: "sequence_parallel"}, costmodel.Set("tp", chosen.TP)))
		}
	}
	return best, search.failed
}

// closest says a form by its settings, as far as they differ from what was asked for.
func (solver *solveCall) closest(form *costmodel.Workload) costmodel.Message {
	asked, degrees := &solver.Costs.Workload, []string{"dp", "tp"}
	if form.Runtime == megatron || form.Runtime == torchtitan {
		degrees = append(degrees, "cp", "pp")
	}
	var words []any
	for _, field := range costmodel.Fields() {
		switch was, is := field.Text(asked), field.Text(form); {
		case slices.Contains(degrees, field.Name) || was != is && (field.Name == "batch" || field.Name == "ep"):
			words = append(words, costmodel.Setting{Field: field.Name, Value: cmp.Or(is, "1")})
		case was != is && (field.Name == "recompute" || field.Name == "sequence_parallel"):
			words = append(words, costmodel.Setting{Field: field.Name, Value: is})
		}
	}
	return costmodel.Messagef(strings.Repeat("%v ", len(words)-1)+"%v", words...)
}

// asked is the workload whose degrees are chosen. Experts under Megatron's tensor
// parallelism need sequence parallelism (core/transformer/moe/moe_layer.py).
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
	none    bool // a form has no cut that fits or is of use
	stopped bool
}

// try finds the best cut of a form. It returns false if no later form is better, or the time has
// ended.
func (search *formSearch) try(ctx context.Context, form *gridForm) bool {
	if form.below >= search.enough() {
		search.below = min(search.below, form.below)
		return false
	}
	if search.stopped = search.best != nil && ctx.Err() != nil; search.stopped {
		search.below = min(search.below, form.below)
		return false
	}
	sol, err := search.solveForm(ctx, form)
	search.looked++
	if errors.Is(err, instance.ErrNone) { // no cut is below what is of use, or fits
		search.none = true
		if search.Objective != Time {
			search.below = min(search.below, max(form.below, search.useful()))
		}
		return true
	}
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

// unfit is why nothing fits; nil: something does, or another fault is in the way.
func (search *formSearch) unfit(all bool) (large *InfeasibleError) {
	if !errors.As(search.failed, &large) && search.best == nil && (search.failed == nil || search.none) {
		search.failed = nil // what refuses some forms is not why others do not fit
		return &InfeasibleError{Proved: all}
	}
	return large
}

// enough is a bound from which on no form is better than the best one: its value, or what
// it needs if it does not fit.
func (search *formSearch) enough() float64 {
	switch {
	case search.best != nil && search.failed == nil && search.fitsOnly:
		return math.Inf(-1)
	case search.best != nil && search.failed == nil:
		return search.best.Value
	case search.Objective == Time || search.best == nil && !search.fitsOnly:
		return math.Inf(1)
	case search.fitsOnly:
		return 1 + instance.Tolerance
	}
	return max(1, search.best.LargestShare)
}

// useful is a share from which on a cut is of no use; 0: none is.
func (search *formSearch) useful() float64 {
	switch {
	case search.Objective == Time:
		return 1 + instance.Tolerance
	case search.best == nil && !search.fitsOnly:
		return 0
	case search.best == nil || search.failed != nil && search.fitsOnly:
		return 1 + instance.Tolerance
	}
	return search.best.LargestShare
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
	table, err := tableOf(search.Graph, &form.workload)
	if err != nil {
		return nil, err
	}
	problem.Workload, problem.Costs = table.Workload, table
	if end, ok := ctx.Deadline(); ok {
		limit = max(time.Until(end), time.Millisecond)
	}
	step := 0.
	if search.best != nil && search.failed == nil {
		limit /= 2
		if search.Objective == Time {
			step = search.best.Value
		}
	}
	return Solve(ctx, problem, Settings{TimeLimit: limit, Probes: search.limits.Probes, FitsOnly: search.fitsOnly, below: search.useful(), step: step, one: true})
}

// bounded gives the best solution the bound of all forms; all: they were all counted.
func (search *formSearch) bounded(all bool, forms int) {
	if !all { // the time ended before
		search.below, search.stopped = 0, true
	}
	solution := search.best
	solution.LowerBound = min(search.below, solution.Value)
	if solution.LowerBound < solution.Value {
		solution.Status, solution.Bound = Feasible, "all degrees"
	}
	if search.stopped {
		solution.Status = LimitReached
	}
	solution.EvenProved = solution.EvenProved && solution.Status == Optimal
	solution.Method = fmt.Sprintf("%s; of %d forms that all stages may have, %d were cut, and bounds leave out the others", solution.Method, forms, search.looked)
}

// tableOf is the table of a workload that is not resolved.
func tableOf(graph *modelgraph.Graph, workload *costmodel.Workload) (*costmodel.Table, error) {
	resolved, err := estimate.Resolve(graph, *workload)
	if err != nil {
		return nil, err
	}
	return estimate.Table(graph, resolved)
}

// gridForms are all degrees that the model, the batch and the GPUs take, the least bound
// first; all: none is left out.
func (solver *solveCall) gridForms(ctx context.Context, model *repeats) (out []gridForm, all bool, err error) {
	var refused error
	all = true
	for _, workload := range grid(solver.asked(), int64(len(solver.Topology.Devices)), int64(len(solver.Graph.Units))) {
		if all = len(out) == 0 || ctx.Err() == nil; !all {
			break
		}
		table, err := tableOf(model.graph, &workload)
		if err != nil {
			refused = err
			continue
		}
		below := leastOf(table, solver.Topology, model, solver.Objective == Time)
		if len(out) == 0 && len(model.times) < len(solver.Graph.Units) { // does it stand for the whole model?
			whole := allUnits(solver.Graph)
			if full, err := tableOf(solver.Graph, &workload); err != nil || leastOf(full, solver.Topology, whole, solver.Objective == Time) < below {
				return solver.gridForms(ctx, whole)
			}
		}
		if !math.IsInf(below, 1) || len(out) == 0 {
			out = append(out, gridForm{workload, below})
		}
	}
	if len(out) == 0 {
		return nil, false, fmt.Errorf("no degrees that all stages can have: %w", cmp.Or(refused, error(costmodel.Refuse(costmodel.Set("gpus", len(solver.Topology.Devices)),
			"no product of degrees is the number of GPUs with a batch that the replicas share evenly (another %v, or fewer %v, may work)", costmodel.Setting{Field: "batch"}, costmodel.Setting{Field: "micro_batches"}))))
	}
	slices.SortStableFunc(out, func(one, other gridForm) int { return cmp.Compare(one.below, other.below) })
	return out, all, nil
}

// mostCompared bounds the GPUs of the comparison, whose search is slow.
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
			return costmodel.Refuse(costmodel.Set("runtime", workload.Runtime), "its ranks need the same GPUs, and device %d differs from device 0 in %s: plan equal GPUs, or use %v without %v",
				i, difference(&device, &first), costmodel.Set("runtime", "torch"), costmodel.Setting{Field: "uniform"})
		}
	}
	return nil
}
