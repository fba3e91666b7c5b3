package instance

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Linked returns a [*LinkError] for the first pair of devices that lacks a link it needs; nil if
// there is none.
func (in *Instance) Linked(placed devicemap.Map) error {
	for unit := 1; unit < len(placed); unit++ {
		from, to := placed[unit-1], placed[unit]
		if from >= 0 && to >= 0 && !in.Topology.Linked(int(from), int(to)) {
			return &LinkError{int(from), int(to), [2]string{in.Graph.Units[unit-1].Name, in.Graph.Units[unit].Name}}
		}
	}
	return nil
}

// Contiguous reports that each device has one run of the units, in device order. It ignores tie
// groups.
func (in *Instance) Contiguous(placed devicemap.Map) bool {
	tied := make([]bool, len(placed))
	for _, units := range in.Graph.TiedUnits() {
		for _, unit := range units {
			tied[unit] = true
		}
	}
	last := devicemap.Device(0)
	for unit, device := range placed {
		if tied[unit] {
			continue
		}
		if device < last {
			return false
		}
		last = device
	}
	return true
}

// Sent returns the bytes that cross between devices in a step. A unit's output goes once to every
// other device that reads it, and its gradient returns in training. The model's outputs go to the
// input's device. It returns 0 in load mode, as nothing runs.
func (in *Instance) Sent(placed devicemap.Map) int64 {
	if in.Costs.Workload.Mode == costmodel.Load || placed == nil {
		return 0
	}
	return NewSender(in).Sent(placed)
}

// SentNote returns a note with the bytes that a map sends if it is not contiguous; otherwise, and
// in load mode, it is empty.
func (in *Instance) SentNote(placed devicemap.Map) string {
	if in.Contiguous(placed) || in.Costs.Workload.Mode == costmodel.Load {
		return ""
	}
	return fmt.Sprintf("not one run of layers a device: %v cross between devices in a step", costmodel.Bytes(in.Sent(placed)))
}

// Sender counts the bytes that maps send.
type Sender struct {
	costs   *costmodel.Table
	readers [][]int // units that read each unit's output
	seen    []int   // per device, the last unit whose output it has
}

// NewSender finds the readers of each output.
func NewSender(in *Instance) *Sender {
	out := &Sender{costs: in.Costs, readers: make([][]int, len(in.Graph.Units)), seen: make([]int, len(in.Topology.Devices))}
	for unit := range in.Graph.Units {
		for _, from := range in.Graph.Units[unit].Inputs {
			out.readers[from] = append(out.readers[from], unit)
		}
	}
	return out
}

// Sent is [Instance.Sent]. In load mode outputs have no size, so it returns the number of outputs
// that cross.
func (sender *Sender) Sent(placed devicemap.Map) int64 {
	workload := &sender.costs.Workload
	for device := range sender.seen {
		sender.seen[device] = -1
	}
	var bytes, outputs int64
	for unit := range sender.readers {
		for _, reader := range sender.readers[unit] {
			if device := placed[reader]; device != placed[unit] && sender.seen[device] != unit {
				sender.seen[device] = unit
				bytes += sender.costs.Units[unit].Work.Output
				outputs++
			}
		}
	}
	if workload.Mode == costmodel.Load {
		return outputs
	}
	if workload.Mode == costmodel.Train {
		bytes *= 2
	}
	if workload.Seq > 0 {
		bytes += bytes * workload.NewTokens / workload.Seq
	}
	if last := len(placed) - 1; last >= 0 && int(placed[last]) != sender.costs.InputDevice {
		bytes += sender.costs.OutputBytes
	}
	return max(1, workload.MicroBatches) * bytes
}
