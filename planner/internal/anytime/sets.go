package anytime

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
func (f *floor) fewest() int {
	least := max(1, bits.OnesCount(f.pinned))
	for i, room := range f.byDevice {
		sorted := slices.Clone(room)
		slices.SortFunc(sorted, func(a, b int64) int { return cmp.Compare(b, a) })
		k, sum := 0, int64(0)
		for k < len(sorted) && sum < f.moments[i].Total {
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
func (f *floor) sets(ctx context.Context, all uint, fewest int, best float64) float64 {
	if len(f.units) > maxSubsets {
		return f.bounded(all, fewest, math.Inf(1))
	}
	least := math.Inf(1)
	for set := uint(1); set <= all; set++ {
		if ctx.Err() != nil {
			return 0
		}
		if k := bits.OnesCount(set); k >= fewest && set&f.pinned == f.pinned {
			least = min(least, f.bounded(set, k, min(least, best*(1+instance.Tolerance))))
		}
	}
	return least
}

// bounded is a step that no map on a set of devices is below, k of them in
// use; it stops where that is past enough.
func (f *floor) bounded(set uint, k int, enough float64) float64 {
	rest := f.crossings(set, k) + f.update(set)
	most := f.fastest(set) + rest
	for i := range f.moments {
		if most >= enough {
			break
		}
		most = max(most, f.packed(i, set)+rest)
	}
	return most
}
