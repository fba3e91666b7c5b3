package steptime

import "github.com/devmap-dev/devmap/costmodel"

// Step is the time of one step in seconds. Unit u is on device place[u]; place is nil if every GPU
// runs the whole model. Units on a tier (−1 host memory, −2 disk) run on the first device; each
// forward copies their parameters.
//
// The host issues kernels ahead of the device, which waits for it if kernels are short. Data
// loading is not counted.
//
// A [*costmodel.FieldError] says why the time is unknown: load mode, missing rates of a device, or
// a strategy without rules.
func Step(table *costmodel.Table, topo *costmodel.Topology, place []int) (float64, error) {
	step, err := newTiming(table, topo, place)
	if err != nil {
		return 0, err
	}
	switch runs := table.Workload.Strategy.Traits(); {
	case runs.Replicated == (place != nil):
		return 0, errorf("a map of units under %s", table.Workload.Strategy)
	case runs.Replicated:
		return step.replicas(), nil
	case table.Workload.Runtime == costmodel.Devmap:
		return TicksOf(table, topo).Seconds(step.place)
	case runs.Staged:
		return step.pipeline(), nil
	}
	unit := func(unit, device int) *UnitSeconds {
		out := step.unit(unit, device)
		return &out
	}
	seconds, _ := Sequential(&table.Workload, step.place, unit, step.send)
	return seconds, nil
}
