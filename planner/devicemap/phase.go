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
}

// NewPhase predicts a phase from what devices hold at its peak: one entry for
// each, or one for all.
func NewPhase(topology *costmodel.Topology, name, component string, held []costmodel.Memory, seconds float64) Phase {
	phase := Phase{Name: name, Component: component, Seconds: seconds}
	for i := range topology.Devices {
		device := &topology.Devices[i]
		prediction := on(i, device)
		memory := held[min(i, len(held)-1)]
		p := predicted(timeline.Peak{Memory: memory, At: name}, device.ContextBytes, [2]float64{})
		for end, part := range device.Slack { // rounded down, as in every plan of a pipeline so far
			p.SlackBytes[end] = int64(part * float64(memory.Total()))
		}
		p.DeviceUsedBytes += (p.SlackBytes[0] + p.SlackBytes[1]) / 2
		prediction.Predicted = p
		prediction.settle()
		phase.Devices = append(phase.Devices, prediction)
	}
	return phase
}

// fullest is the prediction of each device in the phase in which it holds most.
func fullest(phases []Phase) []Prediction {
	var devices []Prediction
	for i := range phases {
		if i == 0 {
			devices = slices.Clone(phases[i].Devices)
		}
		for device := range devices {
			if held := &phases[i].Devices[device]; held.Predicted.PeakAllocatedBytes > devices[device].Predicted.PeakAllocatedBytes {
				devices[device] = *held
			}
		}
	}
	return devices
}

// NewPipelinePlan is the plan of a diffusion pipeline's phases: all but what the
// pipeline is, what it was asked for, and the warnings.
func NewPipelinePlan(topology *costmodel.Topology, phases []Phase) *Plan {
	plan := &Plan{FormatVersion: planVersion, Topology: *topology, Phases: phases, Devices: fullest(phases)}
	plan.Imbalance = imbalance(plan.Devices)
	return plan
}
