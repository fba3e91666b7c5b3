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
	n := 1 + rng.IntN(7)
	layers := make([]modelgraph.Layer, n)
	name := func(i int) string { return fmt.Sprintf("u%d", i) }
	for i := range layers {
		d := modelgraph.NotDeclared()
		d.ActivationBytes, d.WorkspaceBytes, d.OutputBytes = rng.Int64N(300), rng.Int64N(300), rng.Int64N(40)
		layers[i] = modelgraph.Layer{Name: name(i), Declared: &d, Params: []modelgraph.Tensor{
			{Name: "own", Shape: []int64{rng.Int64N(60)}, DType: modelgraph.BF16},
			{Name: "shared", Shape: []int64{20}, DType: modelgraph.BF16},
		}}
	}
	var ties [][]string
	for _, group := range randomTies(rng, n) {
		var names []string
		for _, u := range group {
			names = append(names, name(u)+".shared")
		}
		ties = append(ties, names)
	}
	g, err := modelgraph.New("random", layers, ties)
	if err != nil {
		t.Fatal(err)
	}
	w := costmodel.Workload{Mode: costmodel.Train, Batch: 1, Seq: 1, Precision: costmodel.BF16True, Optimizer: costmodel.AdamWForeach}
	if rng.IntN(4) == 0 {
		w = costmodel.Workload{Mode: costmodel.Load, Precision: costmodel.BF16True}
	}
	if w, err = estimate.Resolve(g, w); err != nil {
		t.Fatal(err)
	}
	table, err := estimate.Table(g, w)
	if err != nil {
		t.Fatal(err)
	}
	p := planner.Problem{Graph: g, Costs: table, Topology: randomTopology(rng)}
	devices := len(p.Topology.Devices)
	for rng.IntN(3) == 0 {
		u := rng.IntN(n)
		p.Pins = append(p.Pins, planner.Pin{Pattern: name(u), Device: min(devices-1, u*devices/n+rng.IntN(2))})
	}
	for rng.IntN(4) == 0 {
		p.Together = append(p.Together, []string{name(rng.IntN(n)), name(rng.IntN(n))})
	}
	return p
}

// randomTies draws up to two groups of units, disjoint, each in any order.
func randomTies(rng *rand.Rand, n int) [][]int {
	order := rng.Perm(n)
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
		d := costmodel.Device{CapacityBytes: 1000 + rng.Int64N(4000), ContextBytes: rng.Int64N(100), WorkspaceBytes: rng.Int64N(50)}
		d.ReservedBytes = rng.Int64N(500)
		return d
	}
	same, equal := draw(), rng.IntN(2) == 0
	for d := range topo.Devices {
		topo.Devices[d] = same
		if !equal {
			topo.Devices[d] = draw()
		}
	}
	return topo
}

func Pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// EveryMap calls f with every assignment of the units to first and the devices
// behind it.
func EveryMap(p *planner.Problem, first devicemap.Device, f func(devicemap.Map)) {
	m := make(devicemap.Map, len(p.Costs.Units))
	var put func(u int)
	put = func(u int) {
		if u == len(m) {
			f(m)
			return
		}
		for m[u] = first; int(m[u]) < len(p.Topology.Devices); m[u]++ {
			put(u + 1)
		}
	}
	put(0)
}

// LargestShare is that of a map's fullest device.
func LargestShare(p *planner.Problem, m devicemap.Map) float64 {
	most := 0.
	for _, d := range devicemap.Predict(p.Costs, p.Topology, m) {
		most = max(most, d.Share())
	}
	return most
}

// Instance is a problem resolved.
func Instance(t *testing.T, p *planner.Problem) *instance.Instance {
	t.Helper()
	in, err := instance.New(instance.Instance{Graph: p.Graph, Costs: p.Costs, Topology: p.Topology, Objective: p.Objective, Anywhere: p.Anywhere, Offload: p.Offload}, p.Pins, p.Together)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// OnH200 is a built-in model on so many H200.
func OnH200(t *testing.T, model string, w costmodel.Workload, gpus int) planner.Problem {
	t.Helper()
	config, err := fs.ReadFile(fixtures.Models(), model+"/config.json")
	if err != nil {
		t.Fatal(err)
	}
	g, table := Costs(t, config, w)
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	return planner.Problem{Graph: g, Costs: table, Topology: &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{gpu.Device(w.Mode)}, gpus)}}
}

// Costs is the model of a config and what its units cost.
func Costs(t *testing.T, config []byte, w costmodel.Workload) (*modelgraph.Graph, *costmodel.Table) {
	t.Helper()
	g, err := hf.FromConfig("config.json", config)
	if err != nil {
		t.Fatal(err)
	}
	if w, err = estimate.Resolve(g, w); err != nil {
		t.Fatal(err)
	}
	table, err := estimate.Table(g, w)
	if err != nil {
		t.Fatal(err)
	}
	return g, table
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
	g, err := modelgraph.New("chain", layers, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := estimate.Resolve(g, costmodel.Workload{Mode: costmodel.Load})
	if err != nil {
		t.Fatal(err)
	}
	table, err := estimate.Table(g, w)
	if err != nil {
		t.Fatal(err)
	}
	p := planner.Problem{Graph: g, Costs: table, Topology: &costmodel.Topology{}}
	for _, capacity := range capacities {
		p.Topology.Devices = append(p.Topology.Devices, costmodel.Device{CapacityBytes: capacity})
	}
	return p
}
