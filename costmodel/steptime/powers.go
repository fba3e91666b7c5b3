package steptime

import "math"

// maxAdditions is up to how many additions a step is simply run again and
// again, and maxOrder up to which order its matrix is made.
const (
	maxAdditions = 1 << 20
	maxOrder     = 512
)

// repeat runs a step count times. A step only adds constants to clocks and takes the latest, so it
// is linear over (max, +), and count steps are a power of one matrix. Squaring finds it in the
// number of count's binary digits (Baccelli, Cohen, Olsder and Quadrat, Synchronization and
// Linearity, 1992, §3). It is exact except for rounding. cost is the number of additions in a step.
func repeat(clocks []deviceClock, count, cost int64, step func([]deviceClock)) {
	order := 2 * len(clocks)
	if count <= maxAdditions/max(1, cost) || order > maxOrder {
		for range count {
			step(clocks)
		}
		return
	}
	power := make([][]deviceClock, order) // by column: the clocks after the step with all but one starting at −∞
	for j := range power {
		power[j] = never(len(clocks))
		*entry(power[j], j) = 0
		step(power[j])
	}
	for {
		if count&1 == 1 {
			copy(clocks, times(power, clocks))
		}
		if count >>= 1; count == 0 {
			return
		}
		square := make([][]deviceClock, order)
		for j := range square {
			square[j] = times(power, power[j])
		}
		power = square
	}
}

// never is the zero vector of (max, +).
func never(ranks int) []deviceClock {
	out := make([]deviceClock, ranks)
	for rank := range out {
		out[rank] = deviceClock{Host: math.Inf(-1), Device: math.Inf(-1)}
	}
	return out
}

// entry is number i of the clocks as a vector: the devices', then the hosts'.
func entry(clocks []deviceClock, i int) *float64 {
	if i < len(clocks) {
		return &clocks[i].Device
	}
	return &clocks[i-len(clocks)].Host
}

// times is the product of a matrix, by columns, and a vector over (max, +).
func times(matrix [][]deviceClock, vector []deviceClock) []deviceClock {
	out := never(len(vector))
	for j, column := range matrix {
		by := *entry(vector, j)
		if math.IsInf(by, -1) {
			continue
		}
		for rank, clock := range column {
			out[rank].Host = max(out[rank].Host, by+clock.Host)
			out[rank].Device = max(out[rank].Device, by+clock.Device)
		}
	}
	return out
}
