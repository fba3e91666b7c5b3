package assigntime

import (
	"context"

	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/assignment"
)

// headroom lists the moments of a step with the least memory of items and the free memory of
// devices.
type headroom struct {
	moments  []assignment.MemoryMoment
	byDevice [][]int64 // by moment and device
	weight   [][]int64 // by moment and item
	first    []int     // [evaluator.reaches]
}

func (eval *evaluator) weigh() *headroom {
	problem := eval.problem
	out := &headroom{moments: problem.Tightest(problem.Moments(), 1)}
	caps := make([]int64, len(problem.Devices))
	for device := range caps {
		caps[device] = problem.Devices[device].Budget
	}
	kindOf := problem.KindOf()
	for i := range out.moments {
		moment := &out.moments[i]
		free, gain := moment.Headroom(problem, caps)
		for device := range free { // any one device may use the whole gain
			free[device] += gain
		}
		weight := make([]int64, len(problem.Items))
		for it, kind := range kindOf {
			if kind >= 0 {
				weight[it] = moment.Weight[kind]
			}
		}
		out.byDevice, out.weight = append(out.byDevice, free), append(out.weight, weight)
	}
	return out
}

// reaches returns, for each unit, the start of the longest run that ends before it and fits on some
// device; nil if the context ends. More units never make a peak smaller, so every map cuts a run
// that fits on no device.
func (eval *evaluator) reaches(ctx context.Context) []int {
	count := len(eval.runs)
	first := make([]int, count+1)
	for end := 1; end <= count; end++ {
		if ctx.Err() != nil {
			return nil
		}
		var run timeline.Summary
		at := end
		for at > first[end-1] {
			if run = eval.runs[at-1].Join(run); !eval.fitsSomewhere(&run) {
				break
			}
			at--
		}
		first[end] = at
	}
	return first
}

func (eval *evaluator) fitsSomewhere(run *timeline.Summary) bool {
	for deviceIndex := range eval.problem.Devices {
		device := &eval.problem.Devices[deviceIndex]
		if device.Like == deviceIndex && run.Peak(device.Resident)+device.Overhead <= device.Budget {
			return true
		}
	}
	return false
}
