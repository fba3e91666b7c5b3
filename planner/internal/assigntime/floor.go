package assigntime

import (
	"math"
	"math/bits"

	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// floor bounds the step of any map from below. The sum at any
// [steptime.Waits] is a bound on the step, so a bound on the sum is one too: of
// the units' parts, the crossings and the slowest update.
type floor struct {
	*evaluator
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
func (bound *floor) safe(value float64) float64 {
	if math.IsInf(value, 1) { // no set was left to bound
		return 0
	}
	return max(0, value*(1-1e-12)-bound.sum*1e-13)
}

func (eval *evaluator) floor(waits steptime.Waits) *floor {
	sums := eval.sums.At(waits)
	bound := &floor{evaluator: eval, whole: make([]float64, len(eval.units))}
	work, update := sums.Seconds()
	bound.cross = sums.Crossings()
	bound.size = sums.Size
	for unit := 0; unit+1 < len(sums.Size); unit++ {
		if eval.problem.ItemOf[unit] != eval.problem.ItemOf[unit+1] {
			bound.sizes = append(bound.sizes, sums.Size[unit])
		}
	}
	for i := range eval.problem.Items {
		it := &eval.problem.Items[i]
		own, up := make([]float64, len(eval.units)), make([]float64, len(eval.units))
		most := 0.
		for device := range own {
			for _, unit := range it.Units {
				own[device] += work[device][unit]
				up[device] += update[device][unit]
			}
			most = max(most, own[device]+up[device])
			bound.whole[device] += up[device]
			if !eval.fitsAlone(i, device) {
				own[device], up[device] = math.Inf(1), math.Inf(1)
			}
		}
		bound.sum += most
		bound.work, bound.updates = append(bound.work, own), append(bound.updates, up)
		if it.Device >= 0 {
			bound.pinned |= 1 << uint(it.Device)
		}
	}
	return bound
}

// inSet reports that a device is in a set; those past its bits are in the set of
// all, the only one where there are so many.
func inSet(set uint, device int) bool { return device >= bits.UintSize || set>>uint(device)&1 != 0 }

// fastest is the sum of the units where each is on the device of a set on
// which it takes least.
func (bound *floor) fastest(set uint) float64 {
	sum := 0.
	for _, row := range bound.work {
		sum += bound.least(row, set)
	}
	return sum
}

func (bound *floor) least(row []float64, set uint) float64 {
	least := math.Inf(1)
	for device, value := range row {
		if inSet(set, device) {
			least = min(least, value)
		}
	}
	return least
}

// update is what the slowest device's update is at least: one item's where it
// takes least, or all of it shared out by speed.
func (bound *floor) update(set uint) float64 {
	unit, rate := 0., 0.
	for _, row := range bound.updates {
		unit = max(unit, bound.least(row, set))
	}
	for device, sum := range bound.whole {
		if inSet(set, device) {
			rate += 1 / sum // a device that takes no time has all of it
		}
	}
	if math.IsInf(rate, 1) || rate == 0 {
		return unit
	}
	return max(unit, 1/rate)
}
