package chain_test

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// TestBounds compares the bounds that need no search with the best of all maps. An answer does not
// show these bounds, as the search's bound is better.
func TestBounds(t *testing.T) {
	t.Parallel()
	tried, met := 0, 0
	for i, s := range []shape{
		{items: 7, devices: 4, cost: 12},
		{items: 7, devices: 4, cost: 9, perDevice: true},
		{items: 7, devices: 4, cost: 1 << 55},
		{items: 6, devices: 4, cost: 9, timeline: true, perDevice: true},
		{items: 5, devices: 3, groups: 3, cost: 12},
		{items: 5, devices: 3, groups: 3, cost: 7, timeline: true, perDevice: true},
		{items: 6, devices: 4, groups: 2, cost: 12, pins: true},
		{items: 7, devices: 4, cost: 12, perDevice: true, messages: true, filled: true},
		{items: 7, devices: 4, cost: 12, timeline: true, pins: true, messages: true, filled: true},
	} {
		for seed := range uint64(400) {
			p := random(rand.New(rand.NewPCG(seed, uint64(80+i))), s)
			best := exhaustive(&p)
			lower, unit, err := chain.Bounds(p)
			if err != nil || best.Maps == 0 {
				continue // contradictory pins
			}
			if rat(lower).Cmp(best.Share) > 0 || unit.Cmp(lower) > 0 {
				t.Fatalf("%+v, seed %d: the bound is %v (one item %v), the best map %v", s, seed, lower, unit, best.Share)
			}
			tried++
			if rat(lower).Cmp(best.Share) == 0 {
				met++
			}
		}
	}
	if tried < 2500 || met < tried/5 {
		t.Errorf("%d problems, in %d the bound is met", tried, met)
	}
}
