package graph_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// TestAverage: no assignment is below the average at any prices, or below the largest item.
func TestAverage(t *testing.T) {
	t.Parallel()
	tried, met := 0, 0
	for seed := range uint64(800) {
		p := whole(rand.New(rand.NewPCG(seed, 23)))
		if math.Pow(float64(p.Devices()), float64(len(p.Nodes))) > 3000 {
			continue
		}
		least := least(p)
		in := graph.NewInstance(p, p.Groups())
		if math.IsInf(least, 1) || in.Feasible() != nil {
			continue
		}
		_, average := in.Average(in.EveryKind(), in.Size)
		item, time := in.LargestItem()
		longest := 0.
		for i := range in.Nodes {
			shortest := math.Inf(1)
			for k := range p.Kinds {
				if p.Kinds[k].Count > 0 && in.Size[i] <= p.Kinds[k].Capacity {
					shortest = min(shortest, in.Time[k][i])
				}
			}
			longest = max(longest, shortest)
		}
		if time != longest || average > least*(1+1e-9) || time > least*(1+1e-9) {
			t.Fatalf("seed %d: the average is %v, item %d takes %v, and the least is %v", seed, average, item, time, least)
		}
		tried++
		if max(average, time) > 0.9*least {
			met++
		}
	}
	if tried < 200 || met < 40 {
		t.Errorf("%d problems, %d of the bounds within a tenth", tried, met)
	}
}
