package downset

import (
	"context"
	"math/rand/v2"
	"testing"
)

func TestContiguousOfHostileProblems(t *testing.T) {
	ctx := context.Background()
	for seed := range uint64(500) {
		p := hostile(rand.New(rand.NewPCG(seed, 17)))
		least := leastContiguous(p)
		s, err := Solve(ctx, p, nil)
		judge(t, seed, p, s, err, least, true)
		if s, err = solveWithin(ctx, p, nil, limits{few: 2, some: 4, most: 8, states: 40}); err == nil {
			judge(t, seed, p, s, err, least, false) // few down-sets, and joined leaves
		}
	}
}
