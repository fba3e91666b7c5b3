package anyplace

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/dags"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
)

// crowded is an annealer that begins with all items on one device, within capacities
// that a few of them fill.
func crowded(seed uint64) *annealer {
	random := rand.New(rand.NewPCG(seed, 21))
	problem := graphtest.NearChain(random, 60, 40, graph.Kind{Count: 3, Capacity: 1500},
		graph.Kind{Count: 2, Capacity: math.Inf(1), FreeTransfers: seed%2 == 0})
	call := newAnywhere(graph.NewInstance(problem, problem.Groups()), graph.Settings{})
	anneal := newAnnealer(newPlacement(call.Netlist, make([]int32, len(call.Nodes))), random)
	anneal.unit, anneal.squarings = graph.Sum(call.Time[0])/5, high
	anneal.refresh(anneal.place)
	return anneal
}

// The norm that is kept step by step is that of the loads, though the sum under its root
// falls by a good deal more than its digits.
func TestNormIsThatOfTheLoads(t *testing.T) {
	t.Parallel()
	fallen := 0
	for seed := range uint64(20) {
		anneal := crowded(seed)
		before := anneal.total
		for range 1000 {
			anneal.step(1e-4)
		}
		norm := anneal.norm
		if anneal.total < before*1e-16 {
			fallen++
		}
		anneal.refresh(anneal.place)
		if math.Abs(norm/anneal.norm-1) > 1e-9 {
			t.Errorf("seed %d: %v, worked out anew %v", seed, norm, anneal.norm)
		}
	}
	if fallen < 15 {
		t.Errorf("%d sums of 20 fell by more than their digits: there is nothing to see", fallen)
	}
}

// The power in the end is the least whose norm of even loads is near the largest.
func TestSteepestIsSteepEnough(t *testing.T) {
	t.Parallel()
	above := func(devices, squarings int) float64 {
		return math.Pow(float64(devices), 1/float64(int(1)<<squarings)) - 1
	}
	for devices := 2; devices <= 55; devices++ {
		if most := steepest(devices); above(devices, most) > 0.134 || above(devices, most-1) < 0.125 {
			t.Errorf("%d devices: %d squarings, %v above the largest; one less %v",
				devices, most, above(devices, most), above(devices, most-1))
		}
	}
	if steepest(1) != steepest(2) || steepest(4000) != high {
		t.Errorf("one device %d squarings, thousands %d", steepest(1), steepest(4000))
	}
}

// What is worse is accepted as often as Metropolis' rule has it, of the norm.
func TestWorseIsAcceptedInMeasure(t *testing.T) {
	t.Parallel()
	anneal := crowded(1)
	for range 1000 {
		anneal.step(1e-4)
	}
	const draws, temperature = 20_000, 0.01
	for _, rise := range []float64{0.002, 0.01, 0.03} {
		accepted, more := 0, anneal.power(anneal.norm+rise)-anneal.total
		for range draws {
			if anneal.accepts(more, temperature) {
				accepted++
			}
		}
		if got, want := float64(accepted)/draws, math.Exp(-rise/temperature); math.Abs(got-want) > 0.02 {
			t.Errorf("%v higher: accepted %v of all times, want %v", rise, got, want)
		}
	}
	if !anneal.accepts(0, temperature) || anneal.accepts(math.NaN(), temperature) {
		t.Error("what is as good is refused, or what is no number taken")
	}
}

// Cooling from random places with a high power ends near the best: a sum of powers is
// a wall there, and left four runs of six over a sixth behind.
func TestCoolingComesPastWalls(t *testing.T) {
	t.Parallel()
	line := dags.Line{Mode: "any", Kind: "layered", Nodes: 119, Devices: 4, Capacity: 1.1, Transfers: 0.8, Seed: 687378}
	problem, err := line.Anew()
	if err != nil {
		t.Fatal(err)
	}
	call := newAnywhere(graph.NewInstance(problem, problem.Groups()), graph.Settings{})
	for seed := range uint64(6) {
		random := rand.New(rand.NewPCG(seed, 9))
		anneal := newAnnealer(newPlacement(call.Netlist, scatter(call.Netlist, random)), random)
		anneal.cool(context.Background(), 78.7, 300_000, way{byCooling, high, 0.06, false})
		if anneal.bestLoad > 92 {
			t.Errorf("seed %d: %v; 78.631 is possible", seed, anneal.bestLoad)
		}
	}
}
