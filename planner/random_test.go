package planner_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/brute"
)

// randomProblem draws a small model with declared costs, ties anywhere, pins
// and together-groups, on devices that are equal half of the time.
func randomProblem(t *testing.T, rng *rand.Rand) planner.Problem {
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

// TestRandom holds the solver to brute force over every map that the rules
// allow, on many small models.
func TestRandom(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	var solved, infeasible, conflicts, tied, small int
	for i := range 1500 {
		p := randomProblem(t, rng)
		best, idle := brute.Solve(&p, true), true
		if best.Maps > 0 {
			if value, _ := brute.Score(&p, best.Map, false, nil); value < best.Value {
				best, idle = brute.Solve(&p, false), false // an idle device's overhead binds
				small++
			}
		}
		sol, err := planner.Solve(t.Context(), p, planner.Settings{})
		var no *planner.InfeasibleError
		var pattern *planner.PatternError
		var conflict *planner.ConflictError
		switch {
		case errors.As(err, &pattern), errors.As(err, &conflict):
			if best.Maps > 0 {
				t.Fatalf("%d: %v, but %d maps are allowed, such as %v", i, err, best.Maps, best.Map)
			}
			conflicts++
			continue
		case errors.As(err, &no):
			if best.Maps == 0 || best.Value <= 1 || !no.Proved || no.Best != sol {
				t.Fatalf("%d: %v, but the best map has a share of %v", i, err, best.Value)
			}
			infeasible++
		case err != nil:
			t.Fatalf("%d: %v", i, err)
		}
		if best.Maps == 0 {
			t.Fatalf("%d: map %v, but none is allowed", i, sol.Map)
		}
		value, squares := brute.Score(&p, sol.Map, idle, nil)
		if !near(sol.Value, best.Value) || !near(value, best.Value) || sol.Status != planner.Optimal || sol.LowerBound != sol.Value {
			t.Fatalf("%d: map %v has share %v (%v, %s, bound %v), the best %v has %v", i, sol.Map, value, sol.Value, sol.Status, sol.LowerBound, best.Map, best.Value)
		}
		if !sol.Even || squares > best.Squares*(1+1e-12) {
			t.Fatalf("%d: map %v has squares %v (even %t), the best %v has %v", i, sol.Map, squares, sol.Even, best.Map, best.Squares)
		}
		solved++
		if len(p.Graph.TiedUnits()) > 0 {
			tied++
		}
	}
	if solved < 1100 || infeasible < 40 || conflicts < 40 || tied < 400 || small < 4 {
		t.Errorf("%d solved, %d of them infeasible and %d tied, %d conflicts, %d smaller than a context: the draw is one-sided", solved, infeasible, tied, conflicts, small)
	}
}

func near(a, b float64) bool {
	diff := a - b
	return diff <= 1e-12*a && -diff <= 1e-12*a
}
