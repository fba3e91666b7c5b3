package instance

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Linked reports the first pair of devices that a map needs a link between
// and has none, as a [*LinkError].
func (in *Instance) Linked(placed devicemap.Map) error {
	for unit := 1; unit < len(placed); unit++ {
		from, to := placed[unit-1], placed[unit]
		if from >= 0 && to >= 0 && !in.Topology.Linked(int(from), int(to)) {
			return &LinkError{int(from), int(to), [2]string{in.Graph.Units[unit-1].Name, in.Graph.Units[unit].Name}}
		}
	}
	return nil
}

// Contiguous reports that each device holds one run of the units, in device
// order, tie groups aside.
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

// Sent is the bytes that cross between devices in a step under a map: what a
// unit makes goes once to every other device that reads it, its gradient
// comes back in training, and the model's outputs go to the input's device. 0
// where nothing runs (load).
func (in *Instance) Sent(placed devicemap.Map) int64 {
	if in.Costs.Workload.Mode == costmodel.Load || placed == nil {
		return 0
	}
	return NewSender(in).Sent(placed)
}

// SentNote says what a map that is not contiguous sends; empty for one that
// is, and where nothing runs.
func (in *Instance) SentNote(placed devicemap.Map) string {
	if in.Contiguous(placed) || in.Costs.Workload.Mode == costmodel.Load {
		return ""
	}
	return fmt.Sprintf("not one run of layers a device: %v cross between devices in a step", costmodel.Bytes(in.Sent(placed)))
}

// Sender counts what crosses, map after map.
type Sender struct {
	costs   *costmodel.Table
	readers [][]int // of each unit's output
	seen    []int   // per device, the last unit whose output it has
}

// NewSender finds who reads what.
func NewSender(in *Instance) *Sender {
	out := &Sender{costs: in.Costs, readers: make([][]int, len(in.Graph.Units)), seen: make([]int, len(in.Topology.Devices))}
	for unit := range in.Graph.Units {
		for _, from := range in.Graph.Units[unit].Inputs {
			out.readers[from] = append(out.readers[from], unit)
		}
	}
	return out
}

// Sent is [Instance.Sent]; in load mode, where no output has a size, the number
// of outputs that cross.
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
