package anytime

import (
	"math"
	"math/bits"

	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// floor bounds the step of any map from below. The sum at any
// [steptime.Waits] is a bound on the step, so a bound on the sum is one too: of
// the units' parts, the crossings and the slowest update.
type floor struct {
	*stepper
	*headroom
	work    [][]float64 // by item and device, +Inf where it cannot be
	updates [][]float64 // likewise
	whole   []float64   // by device, the update of all units
	cross   [][]float64 // by kind of output
	size    []int       // the kind of each unit's output
	sizes   []int       // likewise, of those that can cross
	cuts    float64     // what crossings take in any case
	pinned  uint        // devices that hold a unit in any case
	sum     float64     // of the slowest parts, for rounding
}

// safe is surely no more than a bound, for the rounding of its sums.
func (f *floor) safe(v float64) float64 {
	if math.IsInf(v, 1) { // no set was left to bound
		return 0
	}
	return max(0, v*(1-1e-12)-f.sum*1e-13)
}

func (a *stepper) floor(waits steptime.Waits) *floor {
	sums := a.sums.At(waits)
	f := &floor{stepper: a, whole: make([]float64, len(a.units))}
	work, update := sums.Seconds()
	f.cross = sums.Crossings()
	f.size = sums.Size
	for u := 0; u+1 < len(sums.Size); u++ {
		if a.problem.ItemOf[u] != a.problem.ItemOf[u+1] {
			f.sizes = append(f.sizes, sums.Size[u])
		}
	}
	for i := range a.problem.Items {
		it := &a.problem.Items[i]
		own, up := make([]float64, len(a.units)), make([]float64, len(a.units))
		most := 0.
		for d := range own {
			for _, u := range it.Units {
				own[d] += work[d][u]
				up[d] += update[d][u]
			}
			most = max(most, own[d]+up[d])
			f.whole[d] += up[d]
			if !a.holds(i, d) {
				own[d], up[d] = math.Inf(1), math.Inf(1)
			}
		}
		f.sum += most
		f.work, f.updates = append(f.work, own), append(f.updates, up)
		if it.Device >= 0 {
			f.pinned |= 1 << uint(it.Device)
		}
	}
	return f
}

// in reports that a device is in a set; those past its bits are in the set of
// all, the only one where there are so many.
func in(set uint, d int) bool { return d >= bits.UintSize || set>>uint(d)&1 != 0 }

// fastest is the sum of the units where each is on the device of a set on
// which it takes least.
func (f *floor) fastest(set uint) float64 {
	sum := 0.
	for _, row := range f.work {
		sum += f.least(row, set)
	}
	return sum
}

func (f *floor) least(row []float64, set uint) float64 {
	least := math.Inf(1)
	for d, v := range row {
		if in(set, d) {
			least = min(least, v)
		}
	}
	return least
}

// update is what the slowest device's update is at least: one item's where it
// takes least, or all of it shared out by speed.
func (f *floor) update(set uint) float64 {
	unit, rate := 0., 0.
	for _, row := range f.updates {
		unit = max(unit, f.least(row, set))
	}
	for d, sum := range f.whole {
		if in(set, d) {
			rate += 1 / sum // a device that takes no time has all of it
		}
	}
	if math.IsInf(rate, 1) || rate == 0 {
		return unit
	}
	return max(unit, 1/rate)
}
