package boundcheck_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundprice"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundwindow"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// row is a problem of single nodes on a few devices of one kind.
func row(random *rand.Rand) (problem *graph.Problem, before, after [][]int) {
	problem = graphtest.Whole(random)
	problem.Kinds = problem.Kinds[:1]
	problem.Kinds[0].Count = 2 + random.IntN(2)
	before, after = make([][]int, len(problem.Nodes)), make([][]int, len(problem.Nodes))
	for node := range problem.Nodes {
		of := &problem.Nodes[node]
		of.Group, of.Backward, of.Time = node, false, of.Time[:1]
		if math.IsInf(of.Time[0], 1) {
			of.Time[0] = 3
		}
	}
	for _, edge := range problem.Edges {
		after[edge[0]], before[edge[1]] = append(after[edge[0]], edge[1]), append(before[edge[1]], edge[0])
	}
	return problem, before, after
}

// TestCheckStages: what prices on the sets of stages refute is above nothing that
// is possible, and passes; the least load does not, and neither does a stage that
// forgets a group which it may have.
func TestCheckStages(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	passed, beyond := 0, 0
	for seed := range uint64(200) {
		problem, before, after := row(rand.New(rand.NewPCG(seed, 51)))
		least := graphtest.LeastContiguous(problem)
		if math.IsInf(least, 1) || least == 0 {
			continue
		}
		nets := netlist.New(graph.NewInstance(problem, problem.Groups()))
		cones, kind := boundwindow.NewCones(nets, before, after)
		stages := boundprice.NewStages(ctx, nets, kind)
		for _, part := range []float64{0.7, 0.9, 0.999, 1, 1.2} {
			limit := part * least
			first, last := cones.Windows(limit * (1 + 1e-8))
			proof := stages.Refute(ctx, limit, first, last, 30_000_000)
			if proof == nil {
				continue
			}
			if part >= 1 {
				t.Fatalf("seed %d: %v is said to be refuted, and %v is possible", seed, limit, least)
			}
			if err := boundcheck.CheckStages(ctx, problem, proof); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			passed++
			if limit > graphtest.Least(problem) {
				beyond++
			}
			proof.Limit = least * (1 + 1e-9)
			if boundcheck.CheckStages(ctx, problem, proof) == nil {
				t.Fatalf("seed %d: the least load passes as refuted", seed)
			}
			proof.Limit = limit
			for stage := range proof.Kinds {
				said := &proof.Kinds[stage]
				if len(said.Order) == 0 {
					continue
				}
				kept := said.Order
				said.Order = kept[1:]
				if first[kept[0]] < last[kept[0]] && boundcheck.CheckStages(ctx, problem, proof) == nil {
					t.Fatalf("seed %d: a stage without a group that it may have passes", seed)
				}
				said.Order = kept
			}
		}
	}
	if passed < 100 || beyond < 10 {
		t.Errorf("%d proofs passed, %d of them of loads that some assignment has", passed, beyond)
	}
}

// TestNoStagesPassForTheLeast: whatever the prices and rents, the least load of
// contiguous placements does not pass as refuted.
func TestNoStagesPassForTheLeast(t *testing.T) {
	t.Parallel()
	tried := 0
	for seed := range uint64(400) {
		random := rand.New(rand.NewPCG(seed, 52))
		problem, _, _ := row(random)
		least := graphtest.LeastContiguous(problem)
		if math.IsInf(least, 1) {
			continue
		}
		tried++
		proof := &boundcheck.Proof{Limit: least, Price: make(map[int]float64), Stages: true}
		for node := range problem.Nodes {
			proof.Price[node] = float64(random.IntN(9) - 2)
		}
		for range problem.Kinds[0].Count {
			proof.Kinds = append(proof.Kinds, boundcheck.Kind{
				Rent: float64(random.IntN(12)), Order: random.Perm(len(problem.Nodes)),
				PerLoad: random.Float64() - 0.1, PerByte: random.Float64() - 0.5,
			})
		}
		if boundcheck.CheckStages(context.Background(), problem, proof) == nil {
			t.Fatalf("seed %d: the least load, %v, passes as refuted by %+v", seed, least, proof)
		}
	}
	if tried < 150 {
		t.Errorf("%d problems", tried)
	}
}
