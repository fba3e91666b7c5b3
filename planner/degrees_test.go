package planner_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// everyPipeline simulates all pipelines of stages of any form on the GPUs of a problem, and calls
// visit with the largest share and the step of each.
func everyPipeline(t *testing.T, problem *planner.Problem, visit func(share, step float64)) {
	t.Helper()
	var forms []*costmodel.Table
	for _, dp := range []int64{1, 2} {
		for _, tp := range []int64{1, 2} {
			for _, recompute := range []string{costmodel.RecomputeNone, costmodel.RecomputeFull} {
				table := fixtures.Must(estimate.StageTable(problem.Graph, problem.Costs.Workload, dp, tp, recompute))(t)
				forms = append(forms, table)
			}
		}
	}
	units, gpus := len(problem.Graph.Units), len(problem.Topology.Devices)
	var place func(first, gpu int, placed devicemap.Map, costs costmodel.Table)
	place = func(first, gpu int, placed devicemap.Map, costs costmodel.Table) {
		if first == units && gpu == gpus {
			devices := devicemap.Predict(&costs, problem.Topology, placed)
			most := 0.
			for i := range devices {
				most = max(most, devices[i].Share)
			}
			visit(most, *devicemap.StepSeconds(&costs, problem.Topology, placed))
			return
		}
		for _, form := range forms {
			size := int(form.Workload.DP.Count() * form.Workload.TP.Count())
			if gpu+size > gpus {
				continue
			}
			for end := first + 1; end <= units; end++ {
				if end < units && problem.Costs.Units[end-1].Passes() || gpu+size == gpus && end < units {
					continue
				}
				next := append(devicemap.Map{}, placed...)
				for unit := first; unit < end; unit++ {
					next[unit] = devicemap.Device(gpu)
				}
				with := costs
				with.Stages = append(append([]*costmodel.Table{}, costs.Stages...), form)
				place(end, gpu+size, next, with)
			}
		}
	}
	place(0, 0, make(devicemap.Map, units), *problem.Costs)
}

// TestDegrees compares the answer with all pipelines of stages of any form. Its largest share is
// the smallest, or its step is the shortest up to the reported gap.
func TestDegrees(t *testing.T) {
	for _, objective := range []planner.Objective{planner.Memory, planner.Time} {
		problem := spreadProblem(t, 3, 30<<30, "auto", "auto", objective)
		workload := problem.Costs.Workload
		workload.Recompute, workload.Batch, workload.MicroBatches = "auto", 8, 4
		costs := fixtures.Must(estimate.Table(problem.Graph, workload))(t)
		problem.Costs = costs
		sol := fixtures.Must(planner.Solve(t.Context(), problem, planner.Settings{}))(t)
		share, step, count := math.Inf(1), math.Inf(1), 0
		everyPipeline(t, &problem, func(s, seconds float64) {
			count++
			share = min(share, s)
			if s <= 1 {
				step = min(step, seconds)
			}
		})
		best := map[planner.Objective]float64{planner.Memory: share, planner.Time: step}[objective]
		if sol.LowerBound > best*(1+1e-9) {
			t.Errorf("%s: of %d pipelines the best is %v, and the bound is %v", objective, count, best, sol.LowerBound)
		}
		if sol.Value > best*(1+1e-3) || objective == planner.Memory && sol.Value != best {
			t.Errorf("%s: of %d pipelines the best is %v, and the answer is %v", objective, count, best, sol.Value)
		}
		if sol.Gap() > .05 {
			t.Errorf("%s: a gap of %v", objective, sol.Gap())
		}
	}
}

// TestSomeDegreesOpen: if only some degrees are open, the answer is as good as with any fixed
// values. Its devices are the GPUs of the problem.
func TestSomeDegreesOpen(t *testing.T) {
	recompute := func(problem planner.Problem, value string) planner.Problem {
		table := *problem.Costs
		table.Workload.Recompute = value
		problem.Costs = &table
		return problem
	}
	for name, problem := range map[string][2]planner.Problem{
		"tp open":        {spreadProblem(t, 8, 80<<30, "2", "auto", planner.Memory), spreadProblem(t, 8, 80<<30, "2", "2", planner.Memory)},
		"recompute open": {recompute(spreadProblem(t, 8, 80<<30, "2", "2", planner.Memory), "auto"), spreadProblem(t, 8, 80<<30, "2", "2", planner.Memory)},
		"both open":      {recompute(spreadProblem(t, 8, 80<<30, "1", "auto", planner.Memory), "auto"), spreadProblem(t, 8, 80<<30, "1", "2", planner.Memory)},
		"dp open":        {spreadProblem(t, 8, 80<<30, "auto", "2", planner.Memory), spreadProblem(t, 8, 80<<30, "1", "2", planner.Memory)},
	} {
		chosen, err := planner.Solve(t.Context(), problem[0], planner.Settings{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		fixed := fixtures.Must(planner.Solve(t.Context(), problem[1], planner.Settings{}))(t)
		if chosen.LargestShare > fixed.LargestShare || len(chosen.Devices) != 8 {
			t.Errorf("%s: %v on %d GPUs, and %v with numbers", name, chosen.LargestShare, len(chosen.Devices), fixed.LargestShare)
		}
	}
}

// TestDegreesStopped: without time for mixtures of forms, the stages are equal. Here they are about
// as balanced as the best ones of one form.
func TestDegreesStopped(t *testing.T) {
	problem := spreadProblem(t, 8, 80<<30, "1", "auto", planner.Memory)
	sol := fixtures.Must(planner.SolveDegrees(stopped{t.Context()}, &problem))(t)
	least := math.Inf(1)
	for _, tp := range []string{"1", "2", "4", "8"} {
		fixed := fixtures.Must(planner.Solve(t.Context(), spreadProblem(t, 8, 80<<30, "1", tp, planner.Memory), planner.Settings{}))(t)
		least = min(least, fixed.LargestShare)
	}
	if sol.LargestShare > 1.05*least || sol.Status == planner.Optimal {
		t.Errorf("%v (%s), and stages of one form have %v", sol.LargestShare, sol.Status, least)
	}
}

// stopped is a context that has ended, but contexts derived from it have not.
type stopped struct{ context.Context }

func (stopped) Done() <-chan struct{} { return nil }

func (stopped) Err() error { return context.DeadlineExceeded }

// TestDegreesRefused: problems for which the planner does not choose degrees.
func TestDegreesRefused(t *testing.T) {
	unlike := spreadProblem(t, 4, 80<<30, "auto", "1", planner.Memory)
	unlike.Topology.Devices[2].CapacityBytes = 40 << 30
	pinned := spreadProblem(t, 4, 80<<30, "1", "auto", planner.Memory)
	pinned.Pins = []devicemap.Pin{{Pattern: "lm_head", Device: 3}}
	for want, problem := range map[string]planner.Problem{"device 2 differs from device 0 in capacity_bytes": unlike, "pin names a device": pinned} {
		_, err := planner.Solve(t.Context(), problem, planner.Settings{})
		var field *costmodel.FieldError
		if !errors.As(err, &field) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestDegreesFitNowhere: if no form of the stages fits, the error is proved.
func TestDegreesFitNowhere(t *testing.T) {
	for _, objective := range []planner.Objective{planner.Memory, planner.Time} {
		_, err := planner.Solve(t.Context(), spreadProblem(t, 4, 1<<30, "auto", "auto", objective), planner.Settings{})
		var large *planner.InfeasibleError
		if !errors.As(err, &large) || !large.Proved {
			t.Errorf("%s: %v", objective, err)
		}
	}
}
