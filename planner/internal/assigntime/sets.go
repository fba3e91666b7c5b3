package assigntime

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// maxSubsets is the most devices for which each subset gets a bound.
const maxSubsets = 10

// fewest returns the least number of devices that memory and pins require.
func (bound *floor) fewest() int {
	least := max(1, bits.OnesCount(bound.pinned))
	for i, free := range bound.byDevice {
		sorted := slices.Clone(free)
		slices.SortFunc(sorted, func(a, b int64) int { return cmp.Compare(b, a) })
		k, sum := 0, int64(0)
		for k < len(sorted) && sum < bound.moments[i].Total {
			sum += sorted[k]
			k++
		}
		least = max(least, k)
	}
	return least
}

// sets returns the least bound over all sets of devices that may have units. With more than
// maxSubsets devices it bounds only the set of all devices with the fewest crossings. It stops
// early for sets whose bound reaches the best known step.
func (bound *floor) sets(ctx context.Context, all uint, fewest int, best float64) float64 {
	if len(bound.units) > maxSubsets {
		return bound.bounded(all, fewest, math.Inf(1))
	}
	least := math.Inf(1)
	for set := uint(1); set <= all; set++ {
		if ctx.Err() != nil {
			return 0
		}
		if k := bits.OnesCount(set); k >= fewest && set&bound.pinned == bound.pinned {
			least = min(least, bound.bounded(set, k, min(least, best*(1+instance.Tolerance))))
		}
	}
	return least
}

// bounded returns a lower bound for the step of maps with k devices of a set. It stops once the
// bound reaches enough.
func (bound *floor) bounded(set uint, k int, enough float64) float64 {
	rest := bound.crossings(set, k) + bound.update(set)
	most := bound.fastest(set) + rest
	for i := range bound.moments {
		if most >= enough {
			break
		}
		most = max(most, bound.packed(i, set)+rest)
	}
	return most
}
