package chaintime

import (
	"math"
)

// floor is an update that no map's slowest device is below: all of it shared
// out by speed, or one unit where it takes least.
func (state *search) floor() int64 {
	var rate float64
	var unit int64
	for unitIndex := range state.update[0] {
		least := int64(math.MaxInt64)
		for device := range state.update {
			least = min(least, state.update[device][unitIndex])
		}
		unit = max(unit, least)
	}
	for device := range state.update {
		var sum int64
		for _, value := range state.update[device] {
			sum += value
		}
		if sum == 0 {
			return unit // such a device takes no time for it
		}
		rate += 1 / float64(sum)
	}
	return max(unit, int64(1/rate)-1)
}

// unconstrained is a lower bound on the time of any map at all.
func (state *search) unconstrained() int64 {
	sum := state.lowest
	for unit := range state.unit[0] {
		least := int64(math.MaxInt64)
		for device := range state.unit {
			least = min(least, state.unit[device][unit])
		}
		sum += least
	}
	return sum
}
