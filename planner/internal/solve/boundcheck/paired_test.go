package boundcheck

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestPairedSums: where all that a standing has is paired into one sum or two, whatever the
// hints say, no rent below what a set is worth passes; many that are above it do.
func TestPairedSums(t *testing.T) {
	before := mostSums
	defer func() { mostSums = before }()
	mostSums = 2
	passed, below := 0, 0
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed+30_000, 33))
		problem := graphtest.Whole(random)
		nets := netlist.New(graph.NewInstance(problem, problem.Groups()))
		groups := grouped(problem)
		proof := &Proof{Limit: float64(1 + random.IntN(30)), Price: make(map[int]float64)}
		var order []int
		for _, nodes := range nets.Nodes {
			group := problem.Nodes[nodes[0]].Group
			proof.Price[group] = float64(random.IntN(9) - 2)
			order = append(order, group)
		}
		kind := random.IntN(len(problem.Kinds))
		truth := 0.0
		graphtest.EachSet(len(nets.Nodes), func(has func(int) bool) {
			worth, size := 0.0, 0.0
			for item, group := range order {
				if has(item) {
					worth, size = worth+proof.Price[group], size+nets.Size[item]
				}
			}
			if size <= nets.Capacity[kind] && graphtest.LoadOf(nets, kind, has) <= proof.Limit {
				truth = max(truth, worth)
			}
		})
		for _, part := range []float64{1 - 1e-6, 1.3} {
			said := Kind{Rent: part * truth, Order: order, PerLoad: 1.5*random.Float64() - 0.3, PerByte: max(0, random.Float64()-0.5), Sums: int(seed % 2)}
			switch passes := newSums(problem, groups, proof, kind, &said).check(context.Background()) == nil; {
			case passes && part < 1 && truth > 0 && !math.IsInf(truth, 1):
				t.Fatalf("seed %d: a set is worth %v, and %+v passes within %v", seed, truth, said, proof.Limit)
			case passes:
				passed++
			case part < 1:
				below++
			default:
			}
		}
	}
	if passed < 300 || below < 300 {
		t.Errorf("%d rents passed, %d below what a set is worth did not", passed, below)
	}
}
