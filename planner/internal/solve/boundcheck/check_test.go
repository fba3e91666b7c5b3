package boundcheck_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundprice"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestCheck: what boundprice proves passes; the same prices do not refute the
// least load there is, nor do prices and rents that were tampered with.
func TestCheck(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	passed, refused := 0, 0
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 31))
		problem := graphtest.Random(random)
		if seed%2 == 0 {
			problem = graphtest.Whole(random)
		}
		least := graphtest.Least(problem)
		instance := graph.NewInstance(problem, problem.Groups())
		if math.IsInf(least, 1) || instance.Feasible() != nil {
			continue
		}
		bound := boundprice.New(ctx, netlist.New(instance), math.Inf(1))
		bound.Improve(ctx, least*1.2, 30_000_000)
		if bound.Proof == nil {
			continue
		}
		if bound.Proof.Limit > least*(1+1e-9) {
			t.Errorf("seed %d: %v is said to be refuted, and %v is possible", seed, bound.Proof.Limit, least)
		}
		if err := boundcheck.Check(ctx, problem, bound.Proof); err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		passed++
		limit := bound.Proof.Limit
		bound.Proof.Limit = least * (1 + 1e-9) // sums in another order round otherwise
		if boundcheck.Check(ctx, problem, bound.Proof) == nil {
			t.Errorf("seed %d: the least load passes as refuted", seed)
		}
		bound.Proof.Limit = limit
		for kind := range bound.Proof.Kinds {
			bound.Proof.Kinds[kind].Rent *= 0.5
		}
		if boundcheck.Check(ctx, problem, bound.Proof) != nil {
			refused++
		}
		for group := range bound.Proof.Price {
			delete(bound.Proof.Price, group)
			break
		}
		if boundcheck.Check(ctx, problem, bound.Proof) == nil {
			t.Errorf("seed %d: a group without a price passes", seed)
		}
	}
	if passed < 200 || refused < 150 {
		t.Errorf("%d proofs passed, %d of them were refused at half the rents", passed, refused)
	}
}

// TestNothingPassesForTheLeast: whatever prices, rents and hints say, the least
// load is not refuted.
func TestNothingPassesForTheLeast(t *testing.T) {
	t.Parallel()
	for seed := range uint64(800) {
		random := rand.New(rand.NewPCG(seed, 32))
		problem := graphtest.Whole(random)
		least := graphtest.Least(problem)
		if math.IsInf(least, 1) {
			continue
		}
		proof := &boundcheck.Proof{Limit: least, Price: make(map[int]float64), Kinds: make([]boundcheck.Kind, len(problem.Kinds))}
		var order []int
		for node := range problem.Nodes {
			if group := problem.Nodes[node].Group; group == node {
				proof.Price[group] = float64(random.IntN(9) - 2)
				order = append(order, group)
			}
		}
		for kind := range proof.Kinds {
			random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			proof.Kinds[kind] = boundcheck.Kind{
				Rent: float64(random.IntN(12)), Order: append([]int(nil), order...),
				PerLoad: random.Float64() - 0.1, PerByte: random.Float64() - 0.5, Short: anyShort(random, problem, order),
			}
		}
		if boundcheck.Check(context.Background(), problem, proof) == nil {
			t.Fatalf("seed %d: the least load, %v, passes as refuted by %+v", seed, least, proof)
		}
	}
}

// anyShort says of outputs that any groups of all are what counts of them.
func anyShort(random *rand.Rand, problem *graph.Problem, order []int) (all []boundcheck.Short) {
	of := make(map[int][]int)
	for _, edge := range problem.Edges {
		of[edge[0]] = append(of[edge[0]], problem.Nodes[edge[1]].Group)
	}
	for node, groups := range of {
		groups = append(groups, problem.Nodes[node].Group)
		slices.Sort(groups)
		kept := make([]int, 0, 3)
		for range 3 {
			kept = append(kept, order[random.IntN(len(order))])
		}
		all = append(all, boundcheck.Short{Groups: slices.Compact(groups), Kept: kept})
	}
	return all
}
