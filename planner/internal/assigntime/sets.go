package assigntime

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// maxSubsets is up to how many devices each set of them is bounded.
const maxSubsets = 10

// fewest is the least number of devices that the memory and the pins need.
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

// sets is the least bound of all sets of devices that may be those with
// units; where there are many devices, of all devices with the fewest
// crossings. Sets that cannot be below the best step known are not looked at
// long.
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

// bounded is a step that no map on a set of devices is below, k of them in
// use; it stops where that is past enough.
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
