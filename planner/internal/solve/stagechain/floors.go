package stagechain

import (
	"context"
	"math"
)

// floors are what no way to run the units before an end is below: the device
// time of all its stages, and the sum of their times.
type floors struct{ work, sum []float64 }

// floorsOf adds up the least over the stages' ends and degrees, each stage with
// nothing after it. Where Time depends on which devices a stage has, nothing is
// known of it without them, and the floors are 0.
func (problem *Problem) floorsOf(ctx context.Context) *floors {
	under := &floors{make([]float64, problem.Units+1), make([]float64, problem.Units+1)}
	if problem.Placed && problem.Floor == nil {
		return under
	}
	for to := 1; to <= problem.Units && ctx.Err() == nil; to++ {
		work, sum := math.Inf(1), math.Inf(1)
		for from := to - 1; from >= 0; from-- {
			some := false
			for degree := range problem.Degrees {
				time := problem.floor(from, to, degree)
				some = some || !math.IsInf(time, 1)
				work = min(work, under.work[from]+time*float64(problem.Degrees[degree].Devices()))
				sum = min(sum, under.sum[from]+time)
			}
			if !some && problem.Grows {
				break
			}
		}
		under.work[to], under.sum[to] = work, sum
	}
	return under
}

func (problem *Problem) floor(from, to, degree int) float64 {
	if problem.Floor != nil {
		return problem.Floor(from, to, degree)
	}
	return problem.Time(from, to, degree, After{})
}
