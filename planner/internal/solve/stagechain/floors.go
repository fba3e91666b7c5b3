package stagechain

import (
	"context"
	"math"
)

// floors are lower bounds for any way to run the units before an end: the device time of all its
// stages, and the sum of their times.
type floors struct{ work, sum []float64 }

// floorsOf computes the bounds over the stages' ends and sizes, each stage as if it were the last.
func (problem *Problem) floorsOf(ctx context.Context) *floors {
	under := &floors{make([]float64, problem.Units+1), make([]float64, problem.Units+1)}
	for to := 1; to <= problem.Units && ctx.Err() == nil; to++ {
		work, sum := math.Inf(1), math.Inf(1)
		for from := to - 1; from >= 0; from-- {
			for size, devices := range problem.Sizes {
				time := problem.Time(from, to, size, 0)
				work = min(work, under.work[from]+time*float64(devices))
				sum = min(sum, under.sum[from]+time)
			}
		}
		under.work[to], under.sum[to] = work, sum
	}
	return under
}
