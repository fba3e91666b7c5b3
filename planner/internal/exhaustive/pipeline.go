package exhaustive

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Judged summarizes all maps of a problem.
type Judged struct {
	Maps, Fit int     // number of allowed maps, and of maps within all budgets
	Linked    bool    // a map that fits has all links that it needs
	Share     float64 // the least largest share of any map
	Squares   float64 // the least sum of squared shares of maps with that share
	Seconds   float64 // the shortest step of the maps that fit
	Even      float64 // the least largest share of the maps with that step
}

// Pipeline tries every cut, and for objectives other than [planner.Memory] every order of the
// devices. It scores maps with the check and the plain form of the step. These share only the cost
// table with the solver.
func Pipeline(problem *planner.Problem) Judged {
	workload := &problem.Costs.Workload
	count, chunks := len(problem.Topology.Devices), 1
	if workload.Schedule == costmodel.Interleaved {
		chunks = int(workload.VirtualStages)
	}
	schedule := costmodel.Schedule{Kind: workload.Schedule, Stages: int64(count), Chunks: int64(chunks)}
	out := Judged{Share: math.Inf(1), Squares: math.Inf(1), Seconds: math.Inf(1), Even: math.Inf(1)}
	own := make([]int, count)
	for device := range own {
		own[device] = device
	}
	orders := [][]int{own}
	if problem.Objective != planner.Memory {
		orders = Permutations(count)
	}
	for _, order := range orders {
		ordered := slices.Equal(order, own)
		Cuts(len(problem.Graph.Units), int(schedule.Runs()), nil, func(cuts []int) {
			placement := make(devicemap.Map, len(problem.Graph.Units))
			for c := range len(cuts) - 1 {
				for unit := cuts[c]; unit < cuts[c+1]; unit++ {
					placement[unit] = devicemap.Device(order[schedule.RunRank(int64(c))])
				}
			}
			if keeps(problem, placement) {
				out.take(problem, placement, ordered)
			}
		})
	}
	return out
}

// keeps reports that a map satisfies the pins and together-groups, whose patterns are units' names.
func keeps(problem *planner.Problem, placement devicemap.Map) bool {
	at := func(name string) devicemap.Device {
		return placement[slices.IndexFunc(problem.Graph.Units, func(unit modelgraph.Unit) bool { return unit.Name == name })]
	}
	moved := func(pin devicemap.Pin) bool { return int(at(pin.Pattern)) != pin.Device }
	apart := func(set []string) bool { return at(set[0]) != at(set[1]) }
	return !slices.ContainsFunc(problem.Pins, moved) && !slices.ContainsFunc(problem.Together, apart)
}

func (judged *Judged) take(problem *planner.Problem, placement devicemap.Map, ordered bool) {
	report := devicemap.Check(problem.Graph, problem.Costs, problem.Topology, placement.Flatten(problem.Graph), nil)
	for _, fault := range report.Faults {
		if fault.Kind != "does-not-fit" {
			return
		}
	}
	most, squares := 0., 0.
	for device := range report.Devices {
		share := report.Devices[device].Share
		most, squares = max(most, share), squares+share*share
	}
	if ordered {
		judged.Maps++
		judged.Share, judged.Squares = least(judged.Share, judged.Squares, most, squares)
	}
	linked := linked(problem.Topology, placement)
	if len(report.Faults) > 0 || problem.Objective != planner.Memory && !linked {
		return
	}
	judged.Fit++
	judged.Linked = judged.Linked || linked
	if problem.Objective != planner.Memory {
		judged.Seconds, judged.Even = least(judged.Seconds, judged.Even, seconds(problem, placement), most)
	}
}

// least returns the smaller of two values with its second value. If the values are equal up to
// rounding, it returns the smaller second value.
func least(value, second, other, otherSecond float64) (float64, float64) {
	switch {
	case other < value*(1-1e-12):
		return other, otherSecond
	case other <= value*(1+1e-12):
		return value, min(second, otherSecond)
	}
	return value, second
}

// Cuts calls f with every way to cut count units into k runs.
func Cuts(count, k int, cuts []int, f func([]int)) {
	if cuts == nil {
		cuts = []int{0}
	}
	if len(cuts) == k {
		f(append(slices.Clone(cuts), count))
		return
	}
	for at := cuts[len(cuts)-1] + 1; at <= count-(k-len(cuts)); at++ {
		Cuts(count, k, append(slices.Clone(cuts), at), f)
	}
}

// Permutations returns all orders of count devices.
func Permutations(count int) [][]int {
	if count == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, permutation := range Permutations(count - 1) {
		for at := range count {
			q := append(append(append([]int{}, permutation[:at]...), count-1), permutation[at:]...)
			out = append(out, q)
		}
	}
	return out
}

// LoopedMap assigns the runs between cuts to the devices in turn. It returns nil if a run ends on a
// unit without parameters (a rotary), which belongs to the next run.
func LoopedMap(problem *planner.Problem, cuts, devices []int) devicemap.Map {
	placement := make(devicemap.Map, len(problem.Costs.Units))
	for c := range len(cuts) - 1 {
		if problem.Costs.Units[cuts[c+1]-1].Params == 0 {
			return nil
		}
		for unit := cuts[c]; unit < cuts[c+1]; unit++ {
			placement[unit] = devicemap.Device(devices[c%len(devices)])
		}
	}
	return placement
}
