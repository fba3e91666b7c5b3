package instance

import (
	"sync"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Objective is the quantity to minimize.
type Objective string

// The objectives.
const (
	// Memory is the largest share of a budget, then the sum of squared shares.
	Memory Objective = "memory"
	// Time is the predicted time of a step in seconds, among maps that fit. Ties go to the smaller
	// largest share, then fewer transferred bytes, then fewer cuts.
	Time Objective = "time"
)

// Tier is the memory of offloaded units.
type Tier string

// The tiers. With Disk, units still go to host memory first, if the topology gives its size.
const (
	CPU  Tier = "cpu"
	Disk Tier = "disk"
)

// Instance is a model to place, with its costs, devices and constraints.
type Instance struct {
	Graph *modelgraph.Graph
	Setup
	Constraints
	Objective Objective
	// AnyAssignment: any unit may be on any device, in any order. It is false for pipelines, whose
	// stages are in order.
	AnyAssignment bool
	// Offload is the tier for units that do not fit on the devices. Offloaded lists the units that
	// have left, ascending; a method places the rest.
	Offload   Tier
	Offloaded []int

	// Caps limit the peak of each device in bytes, if the objective is the step.
	Caps []int64

	items func() (*Items, error)
	sets  func() ([]Set, error)
}

// New resolves the constraints of an instance that has none yet. If every device runs the whole
// model, there are none to resolve. An error is a [*ConstraintError].
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

// sealed completes an instance that no longer changes.
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

// Items returns the units as a chain in the order of the model, with the groups outside it. An
// error is a [*ConstraintError], or a [*StageError] if no pipeline can have these stages.
func (in *Instance) Items() (*Items, error) { return in.items() }

// Sets returns the sets of units that must share a device, in any order, each with its pinned
// device. An error is a [*ConstraintError].
func (in *Instance) Sets() ([]Set, error) { return in.sets() }

// CapsBelow returns the peaks whose share is less than a share. They are within the instance's
// caps.
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

// CapsUpTo returns the peaks whose share is at most a share. They are within the instance's caps.
func (in *Instance) CapsUpTo(share float64) []int64 {
	out := in.CapsAt(share)
	for device := range out {
		out[device] = min(out[device], in.Caps[device])
	}
	return out
}
