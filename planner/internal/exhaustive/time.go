package exhaustive

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Point is a map with its step and its largest share.
type Point struct {
	Seconds, Share float64
	Map            devicemap.Map
}

// Points scores every contiguous device map that fits. The maps are in device order; with anyOrder,
// each device has one run of the chain.
func Points(problem *planner.Problem, anyOrder bool) []Point {
	state := search{problem: problem, placement: make(devicemap.Map, len(problem.Graph.Units))}
	state.rules()
	var out []Point
	judge := func() {
		if !state.allowed() {
			return
		}
		pt := Point{Map: append(devicemap.Map{}, state.placement...), Seconds: seconds(problem, state.placement)}
		for _, prediction := range devicemap.Predict(problem.Costs, problem.Topology, state.placement) {
			pt.Share = max(pt.Share, prediction.Share)
		}
		if pt.Share <= 1 && linked(problem.Topology, state.placement) {
			out = append(out, pt)
		}
	}
	state.every(0, -1, 0, anyOrder, judge)
	return out
}

// seconds returns the step of a map, under [planner.Latency] with one micro-batch.
func seconds(problem *planner.Problem, placement devicemap.Map) float64 {
	table := *problem.Costs
	if problem.Objective == planner.Latency {
		table.Workload.MicroBatches = 1
	}
	return *devicemap.StepSeconds(&table, problem.Topology, placement)
}

// every tries every device for a unit and all later ones. last is the device of the chained unit
// before. left has the devices whose run has ended.
func (state *search) every(unit int, last devicemap.Device, left uint, anyOrder bool, judge func()) {
	if unit == len(state.placement) {
		judge()
		return
	}
	for device := range devicemap.Device(len(state.problem.Topology.Devices)) {
		next, over := last, left
		if state.chained[unit] {
			if !anyOrder && device < last || left>>uint(device)&1 != 0 {
				continue
			}
			if last >= 0 && device != last {
				over |= 1 << uint(last)
			}
			next = device
		}
		state.placement[unit] = device
		state.every(unit+1, next, over, anyOrder, judge)
	}
}

func linked(topo *costmodel.Topology, placement devicemap.Map) bool {
	for unit := 1; unit < len(placement); unit++ {
		if !topo.Linked(int(placement[unit-1]), int(placement[unit])) {
			return false
		}
	}
	return true
}
