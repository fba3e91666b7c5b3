package anytime

import (
	"context"

	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/anywhere"
)

// headroom are what the moments of a step say of the memory: what items hold
// at least, and what devices have room for.
type headroom struct {
	moments  []anywhere.Moment
	byDevice [][]int64 // by moment and device
	weight   [][]int64 // by moment and item
	first    []int     // [stepper.reaches]
}

func (a *stepper) weigh() *headroom {
	sc := a.problem
	out := &headroom{moments: sc.Tightest(sc.Moments(), 1)}
	caps := make([]int64, len(sc.Devices))
	for d := range caps {
		caps[d] = sc.Devices[d].Budget
	}
	classOf := sc.KindOf()
	for i := range out.moments {
		m := &out.moments[i]
		room, gain := m.Headroom(sc, caps)
		for d := range room { // one device by itself may have all of the gain
			room[d] += gain
		}
		weight := make([]int64, len(sc.Items))
		for it, c := range classOf {
			if c >= 0 {
				weight[it] = m.Weight[c]
			}
		}
		out.byDevice, out.weight = append(out.byDevice, room), append(out.weight, weight)
	}
	return out
}

// reaches are, for each unit, where the longest stretch that ends before it
// and fits on some device begins; nil once the context ends. No peak gets
// smaller with more units, so what no device holds alone is cut in any map.
func (a *stepper) reaches(ctx context.Context) []int {
	n := len(a.runs)
	first := make([]int, n+1)
	for end := 1; end <= n; end++ {
		if ctx.Err() != nil {
			return nil
		}
		var run timeline.Summary
		at := end
		for at > first[end-1] {
			if run = a.runs[at-1].Join(run); !a.someHolds(&run) {
				break
			}
			at--
		}
		first[end] = at
	}
	return first
}

func (a *stepper) someHolds(run *timeline.Summary) bool {
	for d := range a.problem.Devices {
		h := &a.problem.Devices[d]
		if h.Like == d && run.Peak(h.Kept)+h.Overhead <= h.Budget {
			return true
		}
	}
	return false
}
