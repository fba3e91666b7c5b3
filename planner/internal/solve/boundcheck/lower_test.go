package boundcheck_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundprice"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestRefuted: of a proof that claims a little more than it proves a little less is
// kept, and that is below what is possible.
func TestRefuted(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	whole, lower := 0, 0
	for seed := range uint64(300) {
		problem := graphtest.Whole(rand.New(rand.NewPCG(seed, 91)))
		least := graphtest.Least(problem)
		instance := graph.NewInstance(problem, problem.Groups())
		if math.IsInf(least, 1) || least == 0 || instance.Feasible() != nil {
			continue
		}
		bound := boundprice.New(ctx, netlist.New(instance), least)
		bound.Improve(ctx, least, 3_000_000)
		if bound.Proof == nil || boundcheck.Check(ctx, problem, bound.Proof) != nil {
			continue
		}
		if got := boundcheck.Refuted(ctx, problem, bound.Proof, 0); got != bound.Proof.Limit {
			t.Errorf("seed %d: %v of %v is refuted", seed, got, bound.Proof.Limit)
		}
		whole++
		claim := *bound.Proof
		for claim.Limit *= 1.002; boundcheck.Check(ctx, problem, &claim) == nil; {
			claim.Limit *= 1.002
		}
		got := boundcheck.Refuted(ctx, problem, &claim, 0)
		if got > least*(1+1e-9) {
			t.Errorf("seed %d: %v is refuted, and %v is possible", seed, got, least)
		}
		if again := boundcheck.Refuted(ctx, problem, &claim, got); again > 0 {
			t.Errorf("seed %d: %v is known, and %v asked about", seed, got, again)
		}
		if got > 0 && got < claim.Limit {
			lower++
		}
	}
	if whole < 100 || lower < 50 {
		t.Errorf("%d proofs, %d that claim too much proved a little less", whole, lower)
	}
}
