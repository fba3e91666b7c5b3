package scheduletime

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// seconds are a unit's passes for one micro-batch. Input includes what runs again before it, and
// the gradients of weights if the backward is whole.
type seconds struct{ forward, input, weight float64 }

func unitTimes(table *costmodel.Table, topo *costmodel.Topology, device, unit int) seconds {
	took := steptime.Unit(table, topo, device, unit)
	return seconds{took.Forward, took.Backward - took.Learn, took.Learn}
}

// bytes are what a unit keeps of one micro-batch: to the gradient of its input, to those of its
// weights, and between the two.
type bytes struct{ toInput, toWeight, between int64 }

func (saved bytes) all() int64 { return saved.toInput + saved.toWeight + saved.between }

func unitBytes(unit *costmodel.Unit) bytes {
	if unit.Layers == nil { // an arena's
		toInput, toWeight, between := unit.Regions.OnDevice()
		return bytes{toInput, toWeight, between}
	}
	saved := unit.CheckpointedOutput
	for i := range unit.Layers {
		if unit.Recompute {
			saved += unit.Layers[i].RecomputeSaved
		} else {
			saved += unit.Layers[i].Saved
		}
	}
	return bytes{toInput: saved}
}

func (took *seconds) add(more seconds) {
	took.forward += more.forward
	took.input += more.input
	took.weight += more.weight
}

// least are the bytes that are there at least from forward to the gradient of the input.
func (saved bytes) least() int64 { return saved.toInput + saved.toWeight }
