package planner

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/quote"
	"github.com/devmap-dev/devmap/planner/internal/scheduletime"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/stagedegrees"
)

// open reports a pipeline whose stages choose their degrees or their recomputation.
func open(table *costmodel.Table) bool {
	workload := &table.Workload
	degrees := []costmodel.Degree{workload.DP, workload.TP, workload.CP, workload.EP, workload.PP}
	return len(table.Stages) == 0 && (slices.Contains(degrees, costmodel.AutoDegree) || workload.Recompute == recomputeAuto)
}

// solveDegrees solves for stages that choose their forms. A form is a degree of data and of tensor
// parallelism, and a recomputation mode. Settings of the workload stay as they are.
func (solver *solveCall) solveDegrees(ctx context.Context, in *instance.Instance) (*Solution, error) {
	if err := equalGPUs(in); err != nil {
		return nil, err
	}
	forms, err := stageForms(ctx, solver.Problem)
	if err != nil {
		return nil, err
	}
	method := stagedegrees.Method{Forms: forms}
	answer, err := method.Solve(ctx, in, solver.limits, nil)
	if errors.Is(err, instance.ErrNone) { // no stages keep the caps: use the memory answer
		in = in.For(instance.Memory)
		answer, err = method.Solve(ctx, in, solver.limits, nil)
	}
	if err != nil {
		return nil, err
	}
	sol, err := certify(in, answer, method)
	if err == nil && sol.LargestShare > 1 {
		large := sol.tooLarge()
		large.Form = costmodel.Messagef(" as a pipeline, whatever the form of its stages")
		err = large
	}
	return sol, err
}

// equalGPUs refuses GPUs that differ, pins and links. The search does not choose which GPUs a stage
// has, so all choices must be equal.
func equalGPUs(in *instance.Instance) error {
	workload := &in.Costs.Workload
	field := costmodel.Set("dp", workload.DP)
	if workload.DP != costmodel.AutoDegree {
		field = costmodel.Set("tp", workload.TP)
	}
	if len(in.Pins) > 0 {
		return costmodel.Refuse(field, "%v names a device, and which GPUs a stage has is open (degrees that are numbers take it)", costmodel.Setting{Field: "pin"})
	}
	first := in.Topology.Devices[0]
	for i, device := range in.Topology.Devices {
		if device != first {
			return costmodel.Refuse(field, "automatic degrees need identical GPUs in one host, and device %d differs from device 0 in %s: give numbers, or on several hosts add %v", i, difference(&device, &first), costmodel.Setting{Field: "uniform"})
		}
	}
	if len(in.Topology.Links) > 0 {
		return costmodel.Refuse(field, "automatic degrees need identical links, and the topology lists links of its own: give numbers")
	}
	return nil
}

// difference names the first field in which two devices differ, as a topology file has it.
func difference(one, other *costmodel.Device) string {
	a, b := reflect.ValueOf(*one), reflect.ValueOf(*other)
	for _, field := range reflect.VisibleFields(a.Type()) {
		has, first := a.FieldByIndex(field.Index), b.FieldByIndex(field.Index)
		if field.Anonymous || reflect.DeepEqual(has.Interface(), first.Interface()) {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		return fmt.Sprintf("%s: %s and %s", name, quote.Comment(fmt.Sprint(has)), quote.Comment(fmt.Sprint(first)))
	}
	return ""
}

// maxForms bounds the forms that are looked at.
const maxForms = 256

// stageForms returns the tables of all forms that the model and the workload allow.
func stageForms(ctx context.Context, problem *Problem) ([]*costmodel.Table, error) {
	workload, gpus := problem.Costs.Workload, int64(len(problem.Topology.Devices))
	recomputes := []string{workload.Recompute}
	if workload.Recompute == recomputeAuto {
		recomputes = []string{costmodel.RecomputeNone, costmodel.RecomputeFull}
	}
	var out []*costmodel.Table
	var refused error
	for tp := int64(1); tp <= gpus; tp++ {
		if workload.TP != costmodel.AutoDegree && tp != workload.TP.Count() {
			continue
		}
		for dp := int64(1); dp*tp <= gpus; dp++ {
			if workload.DP != costmodel.AutoDegree && dp != workload.DP.Count() {
				continue
			}
			for _, recompute := range recomputes {
				if len(out) == maxForms || len(out) > 0 && ctx.Err() != nil {
					break
				}
				table, err := estimate.StageTable(problem.Graph, workload, dp, tp, recompute)
				if err != nil {
					refused = err
					continue
				}
				out = append(out, table)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no form of a stage: %w", refused)
	}
	return out, nil
}

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
	return certifyChoice(problem, Time, &scheduletime.Choice{Table: best.Costs}, certificate.Claim{
		Value: best.Value, LowerBound: *devicemap.StepSeconds(problem.Costs, problem.Topology, nil), Bound: "no block recomputed", Rounding: certificate.Exact,
	}, recomputedMethod{})
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
