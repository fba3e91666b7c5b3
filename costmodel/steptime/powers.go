package steptime

import "math"

// fewTimes is up to how many additions a step is simply run again and again,
// and mostPlaces up to how many clocks its matrix is made.
const (
	fewTimes   = 1 << 20
	mostPlaces = 512
)

// again runs a step n times on clocks that it changes by adding constants and
// taking the latest. Such steps are linear over (max, +), so that n of them are
// the n-th power of one matrix, found by squaring (Baccelli, Cohen, Olsder and
// Quadrat, Synchronization and Linearity, 1992, §3): any n takes the time of
// its binary digits, and is exact but for the rounding of fewer sums than n
// steps would take. cost is how many additions a step takes.
func again(clocks []float64, n, cost int64, step func([]float64)) {
	size := len(clocks)
	if n <= fewTimes/max(1, cost) || size > mostPlaces {
		for range n {
			step(clocks)
		}
		return
	}
	power := make([][]float64, size) // by column
	for j := range power {
		power[j] = make([]float64, size)
		for i := range power[j] {
			power[j][i] = math.Inf(-1)
		}
		power[j][j] = 0
		step(power[j])
	}
	for {
		if n&1 == 1 {
			copy(clocks, times(power, clocks))
		}
		if n >>= 1; n == 0 {
			return
		}
		square := make([][]float64, size)
		for j := range square {
			square[j] = times(power, power[j])
		}
		power = square
	}
}

// times is the product of a matrix, by columns, and a vector over (max, +).
func times(matrix [][]float64, vector []float64) []float64 {
	out := make([]float64, len(vector))
	for i := range out {
		out[i] = math.Inf(-1)
	}
	for j, v := range vector {
		if math.IsInf(v, -1) {
			continue
		}
		for i, w := range matrix[j] {
			out[i] = max(out[i], v+w)
		}
	}
	return out
}
