package boundcheck_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph/graphtest"
)

// TestCheckSpine: no load that is possible passes, and many that are a little lower do.
func TestCheckSpine(t *testing.T) {
	t.Parallel()
	passed, tried := 0, 0
	for seed := range uint64(600) {
		random := rand.New(rand.NewPCG(seed, 53))
		problem, _, _ := row(random)
		if middle := len(problem.Nodes) / 2; seed%2 == 0 { // a knot
			for node := range problem.Nodes {
				if node != middle {
					problem.Edges = append(problem.Edges, [2]int{min(node, middle), max(node, middle)})
				}
			}
		}
		least := graphtest.LeastContiguous(problem)
		if math.IsInf(least, 1) || least == 0 {
			continue
		}
		tried++
		if boundcheck.CheckSpine(context.Background(), problem, least) == nil {
			t.Fatalf("seed %d: %v is said to be refuted, and is possible", seed, least)
		}
		if boundcheck.CheckSpine(context.Background(), problem, 0.97*least) == nil {
			passed++
		}
	}
	if tried < 300 || passed < 60 {
		t.Errorf("%d problems, %d of their loads refuted", tried, passed)
	}
}
