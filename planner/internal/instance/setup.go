package instance

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
)

// Setup is a workload on devices: what its units cost and where they run.
type Setup struct {
	// Costs are those of peaks: methods try maps by the thousand. Pooled are the
	// costs as they were given, whose pools may be followed ([costmodel.Table.Marks]),
	// which takes longer than all else that is predicted of a map.
	Costs, Pooled *costmodel.Table
	Topology      *costmodel.Topology
	// Request: under Time, the step is that of one request, a micro-batch that
	// has the devices to itself. Devices hold what they hold at work.
	Request bool

	timed *costmodel.Table
}

// Piped reports a problem of stages.
func (setup *Setup) Piped() bool { return setup.Costs.Workload.Strategy.Traits().Staged }

// Replicated reports that every device runs the whole model.
func (setup *Setup) Replicated() bool { return setup.Costs.Workload.Strategy.Traits().Replicated }

// Trains reports that a step has a backward pass and an update.
func (setup *Setup) Trains() bool { return setup.Costs.Workload.Mode == costmodel.Train }

// Passes is how often a unit's forward (and backward) runs in a step, and how
// many tokens are generated after.
func (setup *Setup) Passes() (microBatches, tokens float64) {
	workload := &setup.Timed().Workload
	return float64(max(1, workload.MicroBatches)), float64(workload.NewTokens)
}

// Timed is the table by which steps are timed: the costs, or where a step is
// that of one request, these with one micro-batch.
func (setup *Setup) Timed() *costmodel.Table { return cmp.Or(setup.timed, setup.Costs) }

// rules are those of the engine.
func (setup *Setup) rules() costmodel.StageRules {
	return costmodel.StageRulesOf(setup.Costs.Workload.Runtime)
}

// Schedule is the pipeline schedule on the instance's devices, TimedSchedule
// that of the step that is timed.
func (setup *Setup) Schedule() costmodel.Schedule { return setup.scheduleOf(&setup.Costs.Workload) }

// TimedSchedule is described at Schedule.
func (setup *Setup) TimedSchedule() costmodel.Schedule {
	return setup.scheduleOf(&setup.Timed().Workload)
}

func (setup *Setup) scheduleOf(workload *costmodel.Workload) costmodel.Schedule {
	chunks := int64(1)
	if workload.Schedule == costmodel.Interleaved {
		chunks = max(2, workload.VirtualStages)
	}
	return costmodel.NewSchedule(workload, int64(len(setup.Topology.Devices)), chunks)
}

// Looped reports a pipeline whose devices run several stages each.
func (setup *Setup) Looped() bool { return setup.Piped() && setup.Schedule().Chunks > 1 }

// CapsAt are the peaks whose share is at most a share, to the nearest byte: a
// share that was a quotient of integers gives its peak again.
func (setup *Setup) CapsAt(share float64) []int64 {
	out := make([]int64, len(setup.Topology.Devices))
	for device := range out {
		out[device] = int64(share*float64(setup.Topology.Devices[device].Budget()) + 0.5)
	}
	return out
}

// Uniform reports that all devices and links are the same, so that the order of
// devices makes no difference except for the input's device.
func (setup *Setup) Uniform() bool {
	for device := 1; device < len(setup.Topology.Devices); device++ {
		if !interchangeable(setup.Topology, 0, device) {
			return false
		}
	}
	return true
}

// Unlike is one device of each kind: those of a kind take the same time for
// any unit.
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
