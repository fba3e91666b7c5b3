package anytime

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/anymemory"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// anyRooms are what the moments of a step say of the memory: what items hold
// at least, and what devices have room for.
type anyRooms struct {
	moments []anymemory.Moment
	rooms   [][]int64 // by moment and device
	weight  [][]int64 // by moment and item
	first   []int     // [anyStep.reaches]
}

func (a *anyStep) weigh() *anyRooms {
	sc := a.sc
	out := &anyRooms{moments: sc.Tightest(sc.Moments(), 1)}
	caps := make([]int64, len(sc.Bins))
	for d := range caps {
		caps[d] = sc.Bins[d].Budget
	}
	classOf := sc.ClassOf()
	for i := range out.moments {
		m := &out.moments[i]
		room, gain := m.Rooms(sc, caps)
		for d := range room { // one device by itself may have all of the gain
			room[d] += gain
		}
		weight := make([]int64, len(sc.Items))
		for it, c := range classOf {
			if c >= 0 {
				weight[it] = m.Weight[c]
			}
		}
		out.rooms, out.weight = append(out.rooms, room), append(out.weight, weight)
	}
	return out
}

// fewest is the least number of devices that the memory and the pins need.
func (f *anyFloor) fewest() int {
	least := max(1, bits.OnesCount(f.pinned))
	for i, room := range f.rooms {
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
func (f *anyFloor) sets(all uint, fewest int, w *anyWalk) float64 {
	if len(f.units) > mostSubsets {
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
func (f *anyFloor) bounded(set uint, k int, enough float64) float64 {
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
