package anymemory

import (
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/solve/assign"
)

// additive solves problems in which a device's peak is the sum of its units
// (weights alone) as what they are, independent items on devices: package
// assign has the bounds and the search for it.
func (a *search) additive() {
	s := a.problem
	if !s.In.Costs.Additive || !s.Each(func(r *timeline.Summary) bool { return *r == timeline.Summary{Static: r.Static} }) {
		return
	}
	q := assign.Problem{Fixed: make([]int64, len(s.Devices))}
	counts := make([][]int, len(s.Devices))
	idle := 0. // the largest share of a device's overhead, which assign counts on idle ones too
	for d := range s.Devices {
		h := &s.Devices[d]
		if h.Kept != (timeline.Resident{}) {
			return
		}
		q.Budgets = append(q.Budgets, h.Budget)
		q.Fixed[d] = h.Overhead
		counts[d] = make([]int, len(s.Kinds))
		idle = max(idle, float64(h.Overhead)/float64(h.Budget))
	}
	var classes []int // of the items to place
	for c := range s.Kinds {
		size := int64(0)
		for _, at := range s.Kinds[c].Positions {
			size += s.Positions[at].Held[1].Static
		}
		for range s.Kinds[c].Items {
			if d := s.Kinds[c].Pin; d >= 0 {
				q.Fixed[d] += size
				counts[d][c]++
				continue
			}
			q.Sizes = append(q.Sizes, size)
			classes = append(classes, c)
		}
	}
	r, err := assign.Solve(a.ctx, q, assign.Settings{})
	if err != nil || len(r.Device) != len(classes) { // sizes past what assign takes
		return
	}
	a.targets++
	for i, d := range r.Device {
		counts[d][classes[i]]++
	}
	a.offer(counts)
	if r.LowerBound > idle { // else a map that leaves devices idle may be below it
		a.refuted = max(a.refuted, r.LowerBound)
	}
}
