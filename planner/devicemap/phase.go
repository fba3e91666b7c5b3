package devicemap

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// Phase is what each device holds in one phase of a diffusion pipeline.
type Phase struct {
	Name      string       `json:"name"`
	Component string       `json:"component"` // the one that makes the peak
	Devices   []Prediction `json:"devices"`
	Seconds   float64      `json:"seconds,omitzero"`
	// Held is what Devices are predicted from: one entry for each, or one for all.
	Used []costmodel.Memory `json:"-"`
	// Pool is the range of what the allocator reserves beyond the peak, as parts of
	// what is not weights, where the topology says nothing of it.
	Pool [2]float64 `json:"-"`
}

// NewPipelinePlan is the plan of a diffusion pipeline, whose phases it predicts
// from what devices hold: all but what the pipeline is, what it was asked for, and
// the warnings other than of tight devices.
func NewPipelinePlan(topology *costmodel.Topology, phases []Phase) *Plan {
	plan := &Plan{FormatVersion: planVersion, Topology: *topology, Phases: slices.Clone(phases)}
	for i := range plan.Phases {
		phase := &plan.Phases[i]
		phase.predict(topology)
		if i == 0 {
			plan.Devices = slices.Clone(phase.Devices)
		}
		for device := range plan.Devices { // in the phase in which it holds most
			if used := &phase.Devices[device]; used.Predicted.PeakAllocatedBytes > plan.Devices[device].Predicted.PeakAllocatedBytes {
				plan.Devices[device] = *used
			}
		}
	}
	plan.Verdict, plan.Imbalance = worst(plan.Devices), imbalance(plan.Devices)
	plan.Warnings = poolNotes(plan.Devices, plan.Workload.Runtime)
	return plan
}

func (phase *Phase) predict(topology *costmodel.Topology) {
	phase.Devices = make([]Prediction, len(topology.Devices))
	for i := range topology.Devices {
		device, prediction := &topology.Devices[i], &phase.Devices[i]
		memory := phase.Used[min(i, len(phase.Used)-1)]
		*prediction = on(i, device)
		prediction.Predicted = predicted(timeline.Peak{Memory: memory, At: phase.Name}, device.ContextBytes, [2]float64{})
		p := &prediction.Predicted
		for end, part := range device.Slack { // rounded down, as in every plan of a pipeline so far
			if p.SlackBytes[end] = int64(part * float64(memory.Total())); device.Slack == [2]float64{} {
				p.SlackBytes[end] = int64(phase.Pool[end] * float64(memory.Total()-memory.Params))
			}
		}
		p.DeviceUsedBytes += (p.SlackBytes[0] + p.SlackBytes[1]) / 2
		prediction.settle()
	}
}
