package devicemap

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// Phase is one phase of a diffusion pipeline, with the memory of each device.
type Phase struct {
	Name      string       `json:"name"`
	Component string       `json:"component"` // the component with the peak
	Devices   []Prediction `json:"devices"`
	Seconds   float64      `json:"seconds,omitzero"`
	// Used is the memory behind Devices: one entry for each device, or one for all.
	Used []costmodel.Memory `json:"-"`
	// Pool is the range of memory that the allocator reserves beyond the peak, as a fraction of the
	// bytes without weights. It applies if the topology gives no range.
	Pool [2]float64 `json:"-"`
}

// NewPipelinePlan returns the plan of a diffusion pipeline, with predictions of its phases from
// their memory. The caller adds the pipeline, its workload, and warnings other than about tight
// devices.
func NewPipelinePlan(topology *costmodel.Topology, phases []Phase) *Plan {
	plan := &Plan{FormatVersion: planVersion, Topology: *topology, Phases: slices.Clone(phases)}
	for i := range plan.Phases {
		phase := &plan.Phases[i]
		phase.predict(topology)
		if i == 0 {
			plan.Devices = slices.Clone(phase.Devices)
		}
		for device := range plan.Devices { // the phase with the device's peak
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
		for end, part := range device.Slack { // rounded down, as in existing plans of pipelines
			if p.SlackBytes[end] = int64(part * float64(memory.Total())); device.Slack == [2]float64{} {
				p.SlackBytes[end] = int64(phase.Pool[end] * float64(memory.Total()-memory.Params))
			}
		}
		p.DeviceUsedBytes += (p.SlackBytes[0] + p.SlackBytes[1]) / 2
		prediction.settle()
	}
}
