package chaintime

import (
	"math"
)

// floor returns a lower bound of the slowest device's update: the whole update divided by speed, or
// one unit on its fastest device.
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
			return unit // a device has 0 seconds for its update
		}
		rate += 1 / float64(sum)
	}
	return max(unit, int64(1/rate)-1)
}

// unconstrained returns a lower bound on the time of any map.
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
