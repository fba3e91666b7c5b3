package stagememory_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// layer is a declared layer: the bytes of its parameters and of its output.
type layer struct{ params, output int64 }

// chainOn returns a pipeline of declared layers on equal devices.
func chainOn(t *testing.T, layers []layer, devices int, capacity int64, w costmodel.Workload) planner.Problem {
	t.Helper()
	var ls []modelgraph.Layer
	for i, l := range layers {
		d := modelgraph.NotDeclared()
		d.ParamsBytes, d.OutputBytes, d.ActivationBytes, d.WorkspaceBytes = l.params, l.output, 0, 0
		d.ForwardSeconds, d.BackwardSeconds = .001, .002
		ls = append(ls, modelgraph.Layer{Name: fmt.Sprintf("u%d", i), Declared: &d})
	}
	g := fixtures.Must(modelgraph.New("chain", ls, nil))(t)
	w.Strategy, w.World, w.Precision = costmodel.Pipeline, int64(devices), costmodel.BF16True
	table := randomproblem.Table(t, g, w)
	table.Comm = costmodel.Comm{}
	device := costmodel.Device{CapacityBytes: capacity, FLOPS: 1e12, Rates: costmodel.Rates{LinkBytesPerSecond: 1e9}}
	return planner.Problem{Graph: g, Costs: table, Topology: &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{device}, devices)}}
}

func infer(kind costmodel.ScheduleKind, m int64) costmodel.Workload {
	return costmodel.Workload{Mode: costmodel.Infer, Schedule: kind, Batch: m, MicroBatches: m}
}

// TestPipelineUneven: five layers whose ends send much and whose middle sends little. The greedy
// search of a chain reaches no allowed cut.
func TestPipelineUneven(t *testing.T) {
	layers := []layer{{1e6, 2e8}, {1e6, 1}, {1e6, 1}, {1e6, 2e8}, {1e6, 1}}
	for _, mode := range []costmodel.Mode{costmodel.Train, costmodel.Infer} {
		w := infer(costmodel.GPipe, 2)
		w.Mode = mode
		p := chainOn(t, layers, 2, 1<<30, w)
		sol := fixtures.Must(planner.Solve(t.Context(), p, planner.Settings{}))(t)
		want := exhaustive.Pipeline(&p)
		if sol.Status != planner.Optimal || !randomproblem.Near(sol.Value, want.Share) || !sol.EvenProved {
			t.Errorf("%s: %v has a share of %v (%s), the best cut %v", mode, sol.Map, sol.Value, sol.Status, want.Share)
		}
	}
}

// TestPipelineRing: in an interleaved pipeline the last device sends to the first, and needs that
// link.
func TestPipelineRing(t *testing.T) {
	layers := slices.Repeat([]layer{{1e6, 1e3}}, 7)
	for _, objective := range []planner.Objective{planner.Memory, planner.Time} {
		p := chainOn(t, layers, 3, 1<<30, infer(costmodel.Interleaved, 3))
		p.Objective = objective
		p.Topology.Links = []costmodel.Link{{From: 0, To: 1, BytesPerSecond: 1e9}, {From: 1, To: 2, BytesPerSecond: 1e9}}
		var link *instance.LinkError
		if sol, err := planner.Solve(t.Context(), p, planner.Settings{}); !errors.As(err, &link) {
			t.Errorf("%s: %v, %v; devices 2 and 0 have no link", objective, sol, err)
		}
	}
}

// TestPipelinePinnedOrder: under --objective time devices may be in any order. With a pin, orders
// differ even if the devices are equal.
func TestPipelinePinnedOrder(t *testing.T) {
	p := chainOn(t, []layer{{60e6, 1}, {60e6, 1}, {1e6, 1}}, 2, 100e6, infer(costmodel.GPipe, 1))
	p.Objective, p.Pins = planner.Time, []devicemap.Pin{{Pattern: "u1", Device: 0}}
	sol, err := planner.Solve(t.Context(), p, planner.Settings{})
	if err != nil || sol.Map[0] != 1 || sol.Map[1] != 0 {
		t.Errorf("%v, %v; u0 fits on device 1, and u1 with u2 on device 0", sol, err)
	}
}

// TestPipelineTooLarge: a unit alone with its messages may be too large, and still fit in a longer
// stage.
func TestPipelineTooLarge(t *testing.T) {
	p := chainOn(t, []layer{{20e6, 1}, {40e6, 60e6}, {30e6, 60e6}, {40e6, 1}}, 2, 100e6, infer(costmodel.GPipe, 1))
	_, err := planner.Solve(t.Context(), p, planner.Settings{})
	var no *planner.InfeasibleError
	if !errors.As(err, &no) || !no.Proved || no.TooLarge != "" {
		t.Errorf("%v, want a proof that names no unit", err)
	}
	p = chainOn(t, []layer{{60e6, 50e6}, {110e6, 50e6}, {60e6, 1}}, 2, 100e6, infer(costmodel.GPipe, 1))
	if _, err = planner.Solve(t.Context(), p, planner.Settings{}); !errors.As(err, &no) || no.TooLarge != "u1" {
		t.Errorf("%v, want one that names u1", err)
	}
}

// TestPipelineNoStage: pins that leave a stage without a unit, and a model without a unit that can
// be a stage.
func TestPipelineNoStage(t *testing.T) {
	p := chainOn(t, slices.Repeat([]layer{{1e6, 1}}, 6), 4, 1<<30, infer(costmodel.GPipe, 1))
	p.Pins = []devicemap.Pin{{Pattern: "u2", Device: 1}, {Pattern: "u3", Device: 3}}
	var stage *planner.StageError
	if _, err := planner.Solve(t.Context(), p, planner.Settings{}); !errors.As(err, &stage) || stage.Field != "pin" {
		t.Errorf("%v, want that device 2 is left without a unit", err)
	}
	g := fixtures.Must(modelgraph.New("bare", []modelgraph.Layer{{Name: "a"}, {Name: "b"}}, nil))(t)
	w := fixtures.Must(estimate.Resolve(g, p.Costs.Workload))(t)
	p = planner.Problem{Graph: g, Costs: &costmodel.Table{Workload: w, Units: make([]costmodel.Unit, len(g.Units))}, Topology: p.Topology}
	if _, err := planner.Solve(t.Context(), p, planner.Settings{}); !errors.As(err, &stage) || stage.Field != "strategy" {
		t.Errorf("%v, want that no unit can be a stage", err)
	}
}

// TestPipelineUnlinked: an order of devices without a link is not allowed, even if few
// micro-batches use the link.
func TestPipelineUnlinked(t *testing.T) {
	w := infer(costmodel.OneFOneB, 4)
	w.Mode, w.Optimizer = costmodel.Train, costmodel.SGD
	p := chainOn(t, slices.Repeat([]layer{{1e6, 1e3}}, 5), 4, 1<<30, w)
	p.Objective = planner.Time
	for _, pair := range [][2]int{{0, 1}, {1, 3}, {3, 2}} {
		p.Topology.Links = append(p.Topology.Links, costmodel.Link{From: pair[0], To: pair[1], BytesPerSecond: 1e9})
	}
	sol := fixtures.Must(planner.Solve(t.Context(), p, planner.Settings{}))(t)
	if want := exhaustive.Pipeline(&p); sol.Status != planner.Optimal || !randomproblem.Close(sol.Value, want.Seconds) {
		t.Errorf("%v takes %v s (%s), the best of all maps %v", sol.Map, sol.Value, sol.Status, want.Seconds)
	}
}
