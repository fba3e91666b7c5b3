package chain_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// TestStagesEnded ends the search for stages after a number of calls of Peak, or of probes. The map
// must be allowed, and the bound valid.
func TestStagesEnded(t *testing.T) {
	t.Parallel()
	open, proved := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 8))
		p := random(rng, shape{items: 9, devices: 4, cost: 50, timeline: seed%2 == 0, perDevice: true, messages: true, filled: true})
		want := exhaustive(&p)
		ctx, cancel := context.WithCancel(t.Context())
		looks, peak := rng.IntN(400), p.Peak
		p.Peak = func(d, a, b int, groups uint64) int64 {
			looks--
			if looks < 0 {
				cancel()
			}
			return peak(d, a, b, groups)
		}
		res, err := chain.Solve(ctx, p, chain.Settings{Probes: rng.IntN(12)})
		cancel()
		var empty *chain.EmptyError
		if errors.As(err, &empty) {
			if want.Maps > 0 {
				t.Fatalf("seed %d: %v, but %d maps exist", seed, err, want.Maps)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Peak = peak
		verify(t, p, res)
		if rat(res.LowerBound).Cmp(want.Share) > 0 {
			t.Fatalf("seed %d: LowerBound %v, optimum %v", seed, res.LowerBound, want.Share)
		}
		if res.Optimal() {
			proved++
		} else {
			open++
		}
	}
	if proved < 50 || open < 50 {
		t.Errorf("%d proved, %d open: the draw is one-sided", proved, open)
	}
}

// TestStagesRough gives the second objective too few cells: the largest share is proved, the sum of
// squares is not.
func TestStagesRough(t *testing.T) {
	rough := 0
	for seed := range uint64(100) {
		p := random(rand.New(rand.NewPCG(seed, 9)), shape{items: 40, devices: 5, cost: 50, messages: true, filled: true})
		full, err := chain.Solve(t.Context(), p, chain.Settings{})
		if err != nil {
			continue
		}
		res := solve(t, p, chain.Settings{Cells: 1})
		if !res.Optimal() || res.Value.Cmp(full.Value) != 0 || res.Squares < full.Squares*(1-1e-12) {
			t.Fatalf("seed %d: %v, squares %v; in full %v, squares %v", seed, res.Value, res.Squares, full.Value, full.Squares)
		}
		if !res.SquaresProved {
			rough++
		}
	}
	if rough < 50 {
		t.Errorf("only %d ran out of cells", rough)
	}
}
