// Package randomproblem generates small problems for the tests of the planner and its methods, from
// the test's random source.
package randomproblem

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Problem generates a small model with declared costs, random ties, pins and
// together-groups, on devices that are equal half of the time.
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
	workload := costmodel.Workload{Mode: costmodel.Train, Batch: 1, Seq: 1, Precision: costmodel.BF16True, Optimizer: "adamw-foreach"}
	if rng.IntN(4) == 0 {
		workload = costmodel.Workload{Mode: costmodel.Load, Precision: costmodel.BF16True}
	}
	problem := planner.Problem{Graph: graph, Costs: Table(t, graph, workload), Topology: randomTopology(rng)}
	devices := len(problem.Topology.Devices)
	for rng.IntN(3) == 0 {
		unit := rng.IntN(count)
		problem.Pins = append(problem.Pins, devicemap.Pin{Pattern: name(unit), Device: min(devices-1, unit*devices/count+rng.IntN(2))})
	}
	for rng.IntN(4) == 0 {
		problem.Together = append(problem.Together, []string{name(rng.IntN(count)), name(rng.IntN(count))})
	}
	return problem
}

// randomTies returns up to two groups of units, disjoint, each in any order.
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
	sample := func() costmodel.Device {
		device := costmodel.Device{CapacityBytes: 1000 + rng.Int64N(4000), ContextBytes: rng.Int64N(100), WorkspaceBytes: rng.Int64N(50)}
		device.ReservedBytes = rng.Int64N(500)
		return device
	}
	same, equal := sample(), rng.IntN(2) == 0
	for device := range topo.Devices {
		topo.Devices[device] = same
		if !equal {
			topo.Devices[device] = sample()
		}
	}
	return topo
}

// Pick returns one of some values.
func Pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// EveryMap calls f with every assignment of the units to devices from first on.
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

// LargestShare returns the share of a map's fullest device.
func LargestShare(problem *planner.Problem, placement devicemap.Map) float64 {
	most := 0.
	for _, prediction := range devicemap.Predict(problem.Costs, problem.Topology, placement) {
		most = max(most, prediction.Share)
	}
	return most
}

// Instance returns the resolved problem.
func Instance(t *testing.T, problem *planner.Problem) *instance.Instance {
	t.Helper()
	in, err := instance.New(instance.Instance{Graph: problem.Graph, Setup: instance.Setup{Costs: problem.Costs, Topology: problem.Topology}, Objective: instance.Objective(problem.Objective), AnyAssignment: problem.Unconstrained, Offload: instance.Tier(problem.Offload)}, problem.Pins, problem.Together)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// Samples returns the number of problems for a random test: few, or a multiple of few with
// SAMPLES=4 go test ./planner/...
func Samples(few int) int {
	if times, err := strconv.Atoi(os.Getenv("SAMPLES")); err == nil {
		return few * times
	}
	return few
}
