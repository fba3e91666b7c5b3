package anymemory

import (
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/solve/assign"
)

// additive solves problems in which a device's peak is the sum of its units
// (weights alone) as what they are, independent items on devices: package
// assign has the bounds and the search for it.
func (state *search) additive() {
	problem := state.problem
	if !problem.In.Costs.Additive || !problem.Each(func(summary *timeline.Summary) bool { return *summary == timeline.Summary{Static: summary.Static} }) {
		return
	}
	sums := assign.Problem{Fixed: make([]int64, len(problem.Devices))}
	counts := make([][]int, len(problem.Devices))
	idle := 0. // the largest share of a device's overhead, which assign counts on idle ones too
	for deviceIndex := range problem.Devices {
		device := &problem.Devices[deviceIndex]
		if device.Kept != (timeline.Resident{}) {
			return
		}
		sums.Budgets = append(sums.Budgets, device.Budget)
		sums.Fixed[deviceIndex] = device.Overhead
		counts[deviceIndex] = make([]int, len(problem.Kinds))
		idle = max(idle, float64(device.Overhead)/float64(device.Budget))
	}
	var kinds []int // of the items to place
	for kind := range problem.Kinds {
		size := int64(0)
		for _, at := range problem.Kinds[kind].Positions {
			size += problem.Positions[at].Held[1].Static
		}
		for range problem.Kinds[kind].Items {
			if device := problem.Kinds[kind].Pin; device >= 0 {
				sums.Fixed[device] += size
				counts[device][kind]++
				continue
			}
			sums.Sizes = append(sums.Sizes, size)
			kinds = append(kinds, kind)
		}
	}
	solution, err := assign.Solve(state.ctx, sums, assign.Settings{})
	if err != nil || len(solution.Device) != len(kinds) { // sizes past what assign takes
		return
	}
	state.targets++
	for i, device := range solution.Device {
		counts[device][kinds[i]]++
	}
	state.offer(counts)
	if solution.LowerBound > idle { // else a map that leaves devices idle may be below it
		state.refuted = max(state.refuted, solution.LowerBound)
	}
}
