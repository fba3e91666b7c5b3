package instance

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
)

// Setup is a workload on devices: the costs of its units and the topology.
type Setup struct {
	// Costs are for peaks without simulated pools, as methods try thousands of maps. Pooled is the
	// caller's table. Its pools may be simulated ([costmodel.Table.Marks]), which takes longer than
	// the rest of a prediction.
	Costs, Pooled *costmodel.Table
	Topology      *costmodel.Topology
	// Request: under Time, the step is that of one request, a micro-batch alone on the devices.
	// Memory is that of the whole workload.
	Request bool

	timed *costmodel.Table
}

// Piped reports that the model runs as pipeline stages.
func (setup *Setup) Piped() bool { return setup.Costs.Workload.Strategy.Traits().Staged }

// Replicated reports that every device runs the whole model.
func (setup *Setup) Replicated() bool { return setup.Costs.Workload.Strategy.Traits().Replicated }

// Trains reports that a step has a backward pass and an update.
func (setup *Setup) Trains() bool { return setup.Costs.Workload.Mode == costmodel.Train }

// Passes returns how often a unit's forward (and backward) runs in a step, and the number of tokens
// generated after that.
func (setup *Setup) Passes() (microBatches, tokens float64) {
	workload := &setup.Timed().Workload
	return float64(max(1, workload.MicroBatches)), float64(workload.NewTokens)
}

// Timed returns the table for step times: Costs, or, if a step is one request, Costs with one
// micro-batch.
func (setup *Setup) Timed() *costmodel.Table { return cmp.Or(setup.timed, setup.Costs) }

// rules returns the stage rules of the engine.
func (setup *Setup) rules() costmodel.StageRules {
	return costmodel.StageRulesOf(setup.Costs.Workload.Runtime)
}

// Schedule returns the pipeline schedule on the instance's devices. It determines memory.
func (setup *Setup) Schedule() costmodel.Schedule { return setup.scheduleOf(&setup.Costs.Workload) }

// TimedSchedule returns the pipeline schedule of the step in [Setup.Timed].
func (setup *Setup) TimedSchedule() costmodel.Schedule {
	return setup.scheduleOf(&setup.Timed().Workload)
}

func (setup *Setup) scheduleOf(workload *costmodel.Workload) costmodel.Schedule {
	chunks := int64(1)
	if workload.Schedule.Vee() {
		chunks = 2
	}
	if workload.Schedule.Loops() {
		chunks = max(2, workload.VirtualStages)
	}
	return costmodel.NewSchedule(workload, int64(len(setup.Topology.Devices)), chunks)
}

// Looped reports a pipeline whose devices run several stages each.
func (setup *Setup) Looped() bool { return setup.Piped() && setup.Schedule().Chunks > 1 }

// CapsAt returns the peaks of a share, rounded to the nearest byte. A share computed from a peak
// gives that peak again.
func (setup *Setup) CapsAt(share float64) []int64 {
	out := make([]int64, len(setup.Topology.Devices))
	for device := range out {
		out[device] = int64(share*float64(setup.Topology.Devices[device].Budget()) + 0.5)
	}
	return out
}

// Uniform reports that all devices and links are the same. The order of devices then matters only
// for the input's device.
func (setup *Setup) Uniform() bool {
	for device := 1; device < len(setup.Topology.Devices); device++ {
		if !interchangeable(setup.Topology, 0, device) {
			return false
		}
	}
	return true
}

// Unlike returns one device of each kind. Devices of a kind take the same time for any unit.
func (setup *Setup) Unlike() []int {
	known := make(map[costmodel.Device]bool)
	var out []int
	for deviceIndex, device := range setup.Topology.Devices {
		kind := costmodel.Device{FLOPS: device.FLOPS, Rates: device.Rates}
		if !known[kind] {
			known[kind] = true
			out = append(out, deviceIndex)
		}
	}
	return out
}
