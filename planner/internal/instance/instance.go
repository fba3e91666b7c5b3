package instance

import (
	"sync"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Objective is what is minimised.
type Objective string

// The objectives.
const (
	// Memory is the largest share of a budget, then the sum of squared shares.
	Memory Objective = "memory"
	// Time is the predicted time of a step, in seconds, among maps that fit;
	// then the largest share, the bytes that cross, and the number of cuts.
	Time Objective = "time"
)

// Tier is where units go that leave the devices.
type Tier string

// The tiers. Under Disk, what the host's memory holds stays in it, where the
// topology says how much that is.
const (
	CPU  Tier = "cpu"
	Disk Tier = "disk"
)

// Instance is what is to be placed, what it costs, where it can go, and what
// every map must keep.
type Instance struct {
	Graph *modelgraph.Graph
	Setup
	Constraints
	Objective Objective
	// AnyAssignment: any unit may be on any device, whatever the order; never
	// under a pipeline, whose stages are in order.
	AnyAssignment bool
	// Offload is the tier that units may leave for where not all fit; Offloaded
	// are those that have left (ascending), while the rest is placed.
	Offload   Tier
	Offloaded []int

	// Caps limit the peak of each device, in bytes, if the objective is the
	// step.
	Caps []int64

	items func() (*Items, error)
	sets  func() ([]Set, error)
}

// New resolves the constraints of an instance that has none yet. Where every
// device runs the whole model, there are none to resolve. An error is a
// [*ConstraintError].
func New(base Instance, pins []Pin, together [][]string) (*Instance, error) {
	in := base
	peaks := *base.Costs
	peaks.Marks = nil
	in.Costs, in.Pooled = &peaks, base.Costs
	in.AnyAssignment = in.AnyAssignment && !in.Piped()
	if !in.Replicated() {
		var err error
		if in.Together, err = resolveTogether(in.Graph, together); err != nil {
			return nil, err
		}
		if in.Pins, err = resolvePins(in.Graph, len(in.Topology.Devices), pins); err != nil {
			return nil, err
		}
	}
	in.Caps = in.CapsAt(1)
	return in.sealed(), nil
}

// sealed is the instance once nothing in it will change.
func (in *Instance) sealed() *Instance {
	in.timed = in.Costs
	if in.Request {
		table := *in.Costs
		table.Workload.MicroBatches = 1
		in.timed = &table
	}
	in.items = sync.OnceValues(func() (*Items, error) { return newItems(in) })
	in.sets = sync.OnceValues(func() ([]Set, error) { return newSets(in) })
	return in
}

// Items are the units as a chain in the order of the model, and the groups
// outside it. An error is a [*ConstraintError], or a [*StageError] where no pipeline
// of this form runs.
func (in *Instance) Items() (*Items, error) { return in.items() }

// Sets are the units by what must share a device, whatever the order, each with
// the device that a pin gives it. An error is a [*ConstraintError].
func (in *Instance) Sets() ([]Set, error) { return in.sets() }

// CapsBelow are the peaks whose share is less than a share, and within the
// instance's caps.
func (in *Instance) CapsBelow(share float64) []int64 {
	out := in.CapsAt(share)
	for device := range out {
		if float64(out[device]) >= share*float64(in.Topology.Devices[device].Budget())*(1-1e-15) {
			out[device]--
		}
		out[device] = min(out[device], in.Caps[device])
	}
	return out
}

// CapsUpTo are the peaks whose share is at most a share, and within the
// instance's caps.
func (in *Instance) CapsUpTo(share float64) []int64 {
	out := in.CapsAt(share)
	for device := range out {
		out[device] = min(out[device], in.Caps[device])
	}
	return out
}
