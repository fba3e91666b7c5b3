package chaintime

import (
	"math"
	"slices"
)

// tickBits is how many bits the time of the slowest map takes.
const tickBits = 50

// slowestSum is the sum of the units where each is on its slowest device.
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

// rounded is how many ticks a map's sum may be off: a half for each unit's
// passes, update and crossing. It is little of a step, but where some device
// or link is so slow that the tick, a part of the slowest map, is long.
func (point *fixedPoint) rounded() int64 { return 2*int64(len(point.peaks.GroupOf)) + 2 }

// secondsOf is a time that is surely no longer than a bound in ticks.
func (point *fixedPoint) secondsOf(bound int64) float64 {
	return max(0, float64(bound-point.rounded())/point.scale*(1-1e-12))
}
