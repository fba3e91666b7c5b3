package assigntime

import (
	"math"
	"math/bits"

	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// floor computes lower bounds for the step of any map. The sum at any [steptime.Waits] is a bound
// of the step, so a bound of the sum is one too. The sum has the units' parts, the crossings and
// the slowest update.
type floor struct {
	*evaluator
	*headroom
	work    [][]float64 // by item and device, +Inf if it is not allowed there
	updates [][]float64 // the same for updates
	whole   []float64   // by device, the update of all units
	cross   [][]float64 // by kind of output
	size    []int       // the kind of each unit's output
	sizes   []int       // the same for units whose output can cross
	cuts    float64     // least seconds of crossings in every map
	pinned  uint        // devices that have a unit in every map
	sum     float64     // of the slowest parts, for rounding
}

// safe lowers a bound by the rounding error of its sums.
func (bound *floor) safe(value float64) float64 {
	if math.IsInf(value, 1) { // every set was excluded
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

// inSet reports that a device is in a set. With more devices than bits, the only set is that of all
// devices.
func inSet(set uint, device int) bool { return device >= bits.UintSize || set>>uint(device)&1 != 0 }

// fastest returns the sum of the units' seconds, each on the fastest device of a set.
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

// update returns a lower bound of the slowest device's update: one item on its fastest device, or
// the whole update divided by speed.
func (bound *floor) update(set uint) float64 {
	unit, rate := 0., 0.
	for _, row := range bound.updates {
		unit = max(unit, bound.least(row, set))
	}
	for device, sum := range bound.whole {
		if inSet(set, device) {
			rate += 1 / sum // a device with 0 seconds takes the whole update
		}
	}
	if math.IsInf(rate, 1) || rate == 0 {
		return unit
	}
	return max(unit, 1/rate)
}
