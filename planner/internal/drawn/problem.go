// Package drawn draws small problems for the tests of the planner and its
// methods, from a source that the test gives.
package drawn

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
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

// Problem draws a small model with declared costs, ties anywhere, pins
// and together-groups, on devices that are equal half of the time.
func Problem(t *testing.T, rng *rand.Rand) planner.Problem {
	t.Helper()
	count := 1 + rng.IntN(7)
	layers := make([]modelgraph.Layer, count)
	name := func(i int) string { return fmt.Sprintf("u%d", i) }
	for i := range layers {
		declared := modelgraph.NotDeclared()
		declared.ActivationBytes, declared.WorkspaceBytes, declared.OutputBytes = rng.Int64N(300), rng.Int64N(300), rng.Int64N(40)
		layers[i] = modelgraph.Layer{Name: name(i), Declared: &declared, Params: []modelgraph.Tensor{
			{Name: "own", Shape: []int64{rng.Int64N(60)}, DType: modelgraph.BF16},
			{Name: "shared", Shape: []int64{20}, DType: modelgraph.BF16},
		}}
	}
	var ties [][]string
	for _, group := range randomTies(rng, count) {
		var names []string
		for _, unit := range group {
			names = append(names, name(unit)+".shared")
		}
		ties = append(ties, names)
	}
	graph, err := modelgraph.New("random", layers, ties)
	if err != nil {
		t.Fatal(err)
	}
	workload := costmodel.Workload{Mode: costmodel.Train, Batch: 1, Seq: 1, Precision: costmodel.BF16True, Optimizer: costmodel.AdamWForeach}
	if rng.IntN(4) == 0 {
		workload = costmodel.Workload{Mode: costmodel.Load, Precision: costmodel.BF16True}
	}
	if workload, err = estimate.Resolve(graph, workload); err != nil {
		t.Fatal(err)
	}
	table, err := estimate.Table(graph, workload)
	if err != nil {
		t.Fatal(err)
	}
	problem := planner.Problem{Graph: graph, Costs: table, Topology: randomTopology(rng)}
	devices := len(problem.Topology.Devices)
	for rng.IntN(3) == 0 {
		unit := rng.IntN(count)
		problem.Pins = append(problem.Pins, planner.Pin{Pattern: name(unit), Device: min(devices-1, unit*devices/count+rng.IntN(2))})
	}
	for rng.IntN(4) == 0 {
		problem.Together = append(problem.Together, []string{name(rng.IntN(count)), name(rng.IntN(count))})
	}
	return problem
}

// randomTies draws up to two groups of units, disjoint, each in any order.
func randomTies(rng *rand.Rand, count int) [][]int {
	order := rng.Perm(count)
	var groups [][]int
	for len(groups) < 2 && len(order) > 1 && rng.IntN(3) > 0 {
		size := min(len(order), 2+rng.IntN(2))
		groups = append(groups, order[:size])
		order = order[size:]
	}
	return groups
}

func randomTopology(rng *rand.Rand) *costmodel.Topology {
	topo := &costmodel.Topology{Devices: make([]costmodel.Device, 1+rng.IntN(4))}
	draw := func() costmodel.Device {
		device := costmodel.Device{CapacityBytes: 1000 + rng.Int64N(4000), ContextBytes: rng.Int64N(100), WorkspaceBytes: rng.Int64N(50)}
		device.ReservedBytes = rng.Int64N(500)
		return device
	}
	same, equal := draw(), rng.IntN(2) == 0
	for device := range topo.Devices {
		topo.Devices[device] = same
		if !equal {
			topo.Devices[device] = draw()
		}
	}
	return topo
}

func Pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// EveryMap calls f with every assignment of the units to first and the devices
// behind it.
func EveryMap(problem *planner.Problem, first devicemap.Device, f func(devicemap.Map)) {
	placement := make(devicemap.Map, len(problem.Costs.Units))
	var put func(unit int)
	put = func(unit int) {
		if unit == len(placement) {
			f(placement)
			return
		}
		for placement[unit] = first; int(placement[unit]) < len(problem.Topology.Devices); placement[unit]++ {
			put(unit + 1)
		}
	}
	put(0)
}

// LargestShare is that of a map's fullest device.
func LargestShare(problem *planner.Problem, placement devicemap.Map) float64 {
	most := 0.
	for _, prediction := range devicemap.Predict(problem.Costs, problem.Topology, placement) {
		most = max(most, prediction.Share())
	}
	return most
}

// Instance is a problem resolved.
func Instance(t *testing.T, problem *planner.Problem) *instance.Instance {
	t.Helper()
	in, err := instance.New(instance.Instance{Graph: problem.Graph, Costs: problem.Costs, Topology: problem.Topology, Objective: problem.Objective, Anywhere: problem.Anywhere, Offload: problem.Offload}, problem.Pins, problem.Together)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// OnH200 is a built-in model on so many H200.
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

// Costs is the model of a config and what its units cost.
func Costs(t *testing.T, config []byte, workload costmodel.Workload) (*modelgraph.Graph, *costmodel.Table) {
	t.Helper()
	graph, err := hf.FromConfig("config.json", config)
	if err != nil {
		t.Fatal(err)
	}
	if workload, err = estimate.Resolve(graph, workload); err != nil {
		t.Fatal(err)
	}
	table, err := estimate.Table(graph, workload)
	if err != nil {
		t.Fatal(err)
	}
	return graph, table
}

// Rough holds the answer of a problem too large for the search for the shortest
// step to that of the search: a map that fits, whose bound is none above what
// the search finds, and whose step is near it.
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

// Chain is a problem of units that hold so many bytes, on devices of a capacity
// each.
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
	workload, err := estimate.Resolve(graph, costmodel.Workload{Mode: costmodel.Load})
	if err != nil {
		t.Fatal(err)
	}
	table, err := estimate.Table(graph, workload)
	if err != nil {
		t.Fatal(err)
	}
	problem := planner.Problem{Graph: graph, Costs: table, Topology: &costmodel.Topology{}}
	for _, capacity := range capacities {
		problem.Topology.Devices = append(problem.Topology.Devices, costmodel.Device{CapacityBytes: capacity})
	}
	return problem
}
