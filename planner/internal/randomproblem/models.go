package randomproblem

import (
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// OnH200 returns a problem of a built-in model on H200 GPUs.
func OnH200(t *testing.T, model string, workload costmodel.Workload, gpus int) planner.Problem {
	t.Helper()
	config, err := fs.ReadFile(fixtures.Models(), model+"/config.json")
	if err != nil {
		t.Fatal(err)
	}
	graph, table := Costs(t, config, workload)
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	return planner.Problem{Graph: graph, Costs: table, Topology: &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{gpu.Device(workload.Mode)}, gpus)}}
}

// Costs returns the model of a config and its cost table.
func Costs(t *testing.T, config []byte, workload costmodel.Workload) (*modelgraph.Graph, *costmodel.Table) {
	t.Helper()
	graph, err := hf.FromConfig("config.json", config)
	if err != nil {
		t.Fatal(err)
	}
	return graph, Table(t, graph, workload)
}

// Table returns a model's cost table for a workload.
func Table(tb testing.TB, graph *modelgraph.Graph, workload costmodel.Workload) *costmodel.Table {
	tb.Helper()
	workload, err := estimate.Resolve(graph, workload)
	if err != nil {
		tb.Fatal(err)
	}
	table, err := estimate.Table(graph, workload)
	if err != nil {
		tb.Fatal(err)
	}
	return table
}

// Rough checks the answer of a problem too large for the search for the shortest step. The map must
// fit, its bound must not exceed the step that the search found, and its step must be within a
// factor of that.
func Rough(t *testing.T, in *instance.Instance, rough, searched *instance.Answer, within float64) {
	t.Helper()
	if !(LargestShare(&planner.Problem{Costs: in.Costs, Topology: in.Topology}, rough.Map) <= 1) {
		t.Errorf("%v does not fit", rough.Map)
	}
	step := func(answer *instance.Answer) float64 {
		return *devicemap.StepSeconds(in.Costs, in.Topology, answer.Map)
	}
	if got, best := step(rough), step(searched); rough.LowerBound > best*(1+1e-9) || rough.LowerBound <= 0 || got < searched.LowerBound*(1-1e-9) || got > within*best {
		t.Errorf("step %v (bound %v), the search %v (bound %v)", got, rough.LowerBound, best, searched.LowerBound)
	}
}

// Chain returns a problem of units with the given bytes, on devices with the given capacities.
func Chain(t *testing.T, sizes []int64, capacities ...int64) planner.Problem {
	t.Helper()
	var layers []modelgraph.Layer
	for i, size := range sizes {
		declared := modelgraph.NotDeclared()
		declared.ParamsBytes = size
		layers = append(layers, modelgraph.Layer{Name: fmt.Sprintf("h.%d", i), Declared: &declared})
	}
	graph, err := modelgraph.New("chain", layers, nil)
	if err != nil {
		t.Fatal(err)
	}
	problem := planner.Problem{Graph: graph, Costs: Table(t, graph, costmodel.Workload{Mode: costmodel.Load}), Topology: &costmodel.Topology{}}
	for _, capacity := range capacities {
		problem.Topology.Devices = append(problem.Topology.Devices, costmodel.Device{CapacityBytes: capacity})
	}
	return problem
}
