package chain_test

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// TestClasses: if the problem names the classes of devices, the answer and its bound are the same
// with fewer calls of Peak.
func TestClasses(t *testing.T) {
	t.Parallel()
	asked, fewer := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 21))
		p := random(rng, shape{items: 12, devices: 6, groups: 2, cost: 40, timeline: seed%2 == 0, perDevice: seed%3 == 0, pins: seed%5 < 2})
		kinds := 1 + rng.IntN(min(3, len(p.Budgets)))
		number := make([]int, len(p.Budgets))
		budget := rng.Perm(3)
		for d := range p.Budgets {
			number[d] = rng.IntN(kinds)
			p.Budgets[d] = int64(50 + 25*budget[number[d]])
		}
		peak := p.Peak
		p.Peak = func(d, a, b int, groups uint64) int64 { asked++; return peak(number[d], a, b, groups) }
		plain, err1 := chain.Solve(t.Context(), p, chain.Settings{})
		before := asked
		p.Class = number
		alike, err2 := chain.Solve(t.Context(), p, chain.Settings{})
		if (err1 == nil) != (err2 == nil) {
			t.Fatal(seed, err1, err2)
		}
		if plain.Value != alike.Value || plain.LowerBound != alike.LowerBound || plain.Squares != alike.Squares || plain.Bound != alike.Bound {
			t.Fatalf("seed %d: %+v, with alike devices %+v", seed, plain, alike)
		}
		if asked-before < before {
			fewer++
		}
		asked = 0
	}
	if fewer < 150 {
		t.Errorf("%d of 300 with fewer questions", fewer)
	}
}
