package steptime

import "github.com/devmap-dev/devmap/costmodel"

// Step is the time of one step in seconds, where unit u is on device place[u]; place is nil where
// every GPU runs the whole model. Units on a tier (−1 in the host's memory, −2 on disk) run on the
// first device, their parameters copied in every forward.
//
// The host issues kernels ahead of the device, which waits for it if kernels are short. Data
// loading is not in it.
//
// A [*costmodel.FieldError] says why the time is not known: nothing runs in load mode, a device's
// rates are not given, or no rule is known for the strategy.
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
