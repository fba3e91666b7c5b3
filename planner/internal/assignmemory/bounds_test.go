package assignmemory_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/internal/assignmemory"
	"github.com/devmap-dev/devmap/planner/internal/exhaustive"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

// TestAnyBounds: each bound of the largest share is at most the best share of all assignments. At
// each moment of the step, every map leaves the devices free memory.
func TestAnyBounds(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(65, 66))
	tried, met := 0, map[string]int{}
	for i := range 1500 {
		p := randomproblem.Problem(t, rng)
		p.Unconstrained = true
		if math.Pow(float64(len(p.Topology.Devices)), float64(len(p.Graph.Units))) > 600 {
			continue
		}
		if i%3 == 0 { // caches that grow as tokens are generated
			p.Costs.Workload = costmodel.Workload{Mode: costmodel.Infer, Batch: 1, Seq: 1, Precision: costmodel.BF16True}
			p.Costs.LastGradients = false
			for u := range p.Costs.Units {
				unit := &p.Costs.Units[u]
				unit.OptimizerState, unit.StepTransient, unit.LastBackward = 0, 0, 0
				for s := range unit.Layers {
					cache := rng.Int64N(200)
					unit.Layers[s] = costmodel.LayerMemory{Layer: unit.Layers[s].Layer, KV: cache, CacheGrowth: rng.Int64N(400), HeadPeak: 1 + rng.Int64N(100), Forward: cache + rng.Int64N(100)}
				}
			}
		}
		if i%5 == 0 { // units of two kinds alternate
			for u := 3; u < len(p.Costs.Units); u++ {
				like := p.Costs.Units[u-2]
				like.Name = p.Costs.Units[u].Name
				p.Costs.Units[u] = like
			}
		}
		best := exhaustive.Solve(&p, false)
		bounds, err := assignmemory.Bounds(t.Context(), randomproblem.Instance(t, &p))
		if err != nil || best.Maps == 0 {
			continue // contradictory pins
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		early, err := assignmemory.Bounds(ended, randomproblem.Instance(t, &p))
		if b := early["relaxed search"]; err != nil || b > best.Value*(1+1e-12) {
			t.Fatalf("%d: stopped at once, the relaxed search says that no share is below %v, and %v has %v", i, b, best.Map, best.Value)
		}
		for name, b := range bounds {
			if b > best.Value*(1+1e-12) {
				t.Fatalf("%d: %s says that no share is below %v, and %v has %v", i, name, b, best.Map, best.Value)
			}
			if b > 0.99*best.Value {
				met[name]++
			}
		}
		if spare, err := assignmemory.Spare(randomproblem.Instance(t, &p), best.Value); err != nil || spare < 0 {
			t.Fatalf("%d: %v has a share of %v, and a moment lacks %d B under it (%v)", i, best.Map, best.Value, -spare, err)
		}
		tried++
	}
	if tried < 500 || met["largest unit"] < 100 || met["average"] < 100 || met["relaxed search"] < 5 {
		t.Errorf("%d problems; met %v", tried, met)
	}
}

// TestInfeasibleBelow: a limit below the best share of any assignment is proved
// infeasible, and one above it is not. The bound is then valid for all maps. The
// search calls the incumbent optimal only if the limit was the incumbent's share.
func TestInfeasibleBelow(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(73, 74))
	tried := 0
	for i := range 500 {
		p := randomproblem.Problem(t, rng)
		p.Unconstrained, p.Pins = true, nil
		if math.Pow(float64(len(p.Topology.Devices)), float64(len(p.Graph.Units))) > 600 {
			continue
		}
		best := exhaustive.Solve(&p, false)
		for _, part := range []float64{0.5, 0.9, 0.999, 1.001} {
			no, bound, proved, err := assignmemory.InfeasibleBelow(t.Context(), randomproblem.Instance(t, &p), part*best.Value)
			if err != nil {
				t.Fatal(err)
			}
			if no != (part < 1) || bound > best.Value*(1+1e-12) || proved && part < 0.999 {
				t.Fatalf("%d: the best share is %v; below %v of it nothing is said to be: %t, nothing below %v at all, and the map at hand is the best: %t", i, best.Value, part, no, bound, proved)
			}
			tried++
		}
	}
	if tried < 700 {
		t.Errorf("%d questions", tried)
	}
}
