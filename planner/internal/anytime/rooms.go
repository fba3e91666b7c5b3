package anytime

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/anywhere"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// headroom are what the moments of a step say of the memory: what items hold
// at least, and what devices have room for.
type headroom struct {
	moments  []anywhere.Moment
	byDevice [][]int64 // by moment and device
	weight   [][]int64 // by moment and item
	first    []int     // [stepper.reaches]
}

func (a *stepper) weigh() *headroom {
	sc := a.problem
	out := &headroom{moments: sc.Tightest(sc.Moments(), 1)}
	caps := make([]int64, len(sc.Devices))
	for d := range caps {
		caps[d] = sc.Devices[d].Budget
	}
	classOf := sc.KindOf()
	for i := range out.moments {
		m := &out.moments[i]
		room, gain := m.Headroom(sc, caps)
		for d := range room { // one device by itself may have all of the gain
			room[d] += gain
		}
		weight := make([]int64, len(sc.Items))
		for it, c := range classOf {
			if c >= 0 {
				weight[it] = m.Weight[c]
			}
		}
		out.byDevice, out.weight = append(out.byDevice, room), append(out.weight, weight)
	}
	return out
}

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
// crossings. Sets that cannot be below the best map are not looked at long.
func (f *floor) sets(all uint, fewest int, w *walk) float64 {
	if len(f.units) > maxSubsets {
		return f.bounded(all, fewest, math.Inf(1))
	}
	least := math.Inf(1)
	for set := uint(1); set <= all; set++ {
		if w.ctx.Err() != nil {
			return 0
		}
		if k := bits.OnesCount(set); k >= fewest && set&f.pinned == f.pinned {
			least = min(least, f.bounded(set, k, min(least, w.bestScore.step*(1+instance.Tolerance))))
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
