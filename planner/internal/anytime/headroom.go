package anytime

import (
	"context"

	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/anywhere"
)

// headroom are what the moments of a step say of the memory: what items hold
// at least, and what devices have room for.
type headroom struct {
	moments  []anywhere.MemoryMoment
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
		room, gain := moment.Headroom(problem, caps)
		for device := range room { // one device by itself may have all of the gain
			room[device] += gain
		}
		weight := make([]int64, len(problem.Items))
		for it, kind := range kindOf {
			if kind >= 0 {
				weight[it] = moment.Weight[kind]
			}
		}
		out.byDevice, out.weight = append(out.byDevice, room), append(out.weight, weight)
	}
	return out
}

// reaches are, for each unit, where the longest stretch that ends before it
// and fits on some device begins; nil once the context ends. No peak gets
// smaller with more units, so what no device holds alone is cut in any map.
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
			if run = eval.runs[at-1].Join(run); !eval.someHolds(&run) {
				break
			}
			at--
		}
		first[end] = at
	}
	return first
}

func (eval *evaluator) someHolds(run *timeline.Summary) bool {
	for deviceIndex := range eval.problem.Devices {
		device := &eval.problem.Devices[deviceIndex]
		if device.Like == deviceIndex && run.Peak(device.Kept)+device.Overhead <= device.Budget {
			return true
		}
	}
	return false
}
