package chaintime

import (
	"math"
	"slices"
)

// tickBits is the number of bits for the time of the slowest map.
const tickBits = 50

// slowestSum returns the sum of the units' seconds, each on its slowest device.
func slowestSum(rows [][]float64) float64 {
	var sum float64
	for unit := range rows[0] {
		most := 0.
		for device := range rows {
			most = max(most, rows[device][unit])
		}
		sum += most
	}
	return sum
}

func largest(rows [][]float64) float64 {
	most := 0.
	for _, row := range rows {
		most = max(most, slices.Max(row))
	}
	return most
}

func (point *fixedPoint) ticks(rows [][]float64) [][]int64 {
	out := make([][]int64, len(rows))
	for i, row := range rows {
		out[i] = make([]int64, len(row))
		for j, value := range row {
			if value < 0 {
				out[i][j] = -1
				continue
			}
			out[i][j] = int64(math.Round(value * point.scale))
		}
	}
	return out
}

// rounded returns the largest rounding error of a map's sum in ticks: half a tick for each unit's
// passes, update and crossing. The error is small unless some device or link is very slow, as the
// tick is a fraction of the slowest map.
func (point *fixedPoint) rounded() int64 { return 2*int64(len(point.peaks.GroupOf)) + 2 }

// secondsOf converts a bound in ticks to seconds, rounded down.
func (point *fixedPoint) secondsOf(bound int64) float64 {
	return max(0, float64(bound-point.rounded())/point.scale*(1-1e-12))
}
