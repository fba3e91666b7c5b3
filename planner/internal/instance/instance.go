package instance

import (
	"cmp"
	"sync"

	"github.com/devmap-dev/devmap/costmodel"
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
	// Costs are those of peaks: methods try maps by the thousand. Pooled are the
	// costs as they were given, whose pools may be followed ([costmodel.Table.Marks]),
	// which takes longer than all else that is predicted of a map.
	Costs, Pooled *costmodel.Table
	Topology      *costmodel.Topology
	Objective     Objective
	// Request: under Time, the step is that of one request, a micro-batch that
	// has the devices to itself. Devices hold what they hold at work.
	Request bool
	// Anywhere: any unit may be on any device, whatever the order; never under
	// a pipeline, whose stages are in order.
	Anywhere bool
	// Offload is the tier that units may leave for where not all fit; Offloaded
	// are those that have left (ascending), while the rest is placed.
	Offload   Tier
	Offloaded []int

	// Pins and together-groups are in the order in which they were asked for.
	Pins     []Pinned
	Together []Joined

	// Caps are the bytes that a device may hold at its peak, where the step is
	// what is minimised.
	Caps []int64

	timed *costmodel.Table
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
	in.Anywhere = in.Anywhere && !in.Piped()
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

// Items are the units as a chain in the order of the model, with the groups
// beside it. An error is a [*ConstraintError], or a [*StageError] where no pipeline
// of this form runs.
func (in *Instance) Items() (*Items, error) { return in.items() }

// Sets are the units by what must share a device, whatever the order, each with
// the device that a pin gives it. An error is a [*ConstraintError].
func (in *Instance) Sets() ([]Set, error) { return in.sets() }

// Piped reports a problem of stages.
func (in *Instance) Piped() bool { return in.Costs.Workload.Strategy.Traits().Staged }

// Replicated reports that every device runs the whole model.
func (in *Instance) Replicated() bool { return in.Costs.Workload.Strategy.Traits().Replicated }

// Trains reports that a step has a backward pass and an update.
func (in *Instance) Trains() bool { return in.Costs.Workload.Mode == costmodel.Train }

// Passes is how often a unit's forward (and backward) runs in a step, and how
// many tokens are generated after.
func (in *Instance) Passes() (microBatches, tokens float64) {
	workload := &in.Timed().Workload
	return float64(max(1, workload.MicroBatches)), float64(workload.NewTokens)
}

// Timed is the table by which steps are timed: the costs, or where a step is
// that of one request, these with one micro-batch.
func (in *Instance) Timed() *costmodel.Table { return cmp.Or(in.timed, in.Costs) }

// rules are those of the engine.
func (in *Instance) rules() costmodel.StageRules {
	return costmodel.StageRulesOf(in.Costs.Workload.Runtime)
}

// Schedule is the pipeline schedule on the instance's devices, TimedSchedule
// that of the step that is timed.
func (in *Instance) Schedule() costmodel.Schedule { return in.scheduleOf(&in.Costs.Workload) }

// TimedSchedule is described at Schedule.
func (in *Instance) TimedSchedule() costmodel.Schedule { return in.scheduleOf(&in.Timed().Workload) }

func (in *Instance) scheduleOf(workload *costmodel.Workload) costmodel.Schedule {
	chunks := int64(1)
	if workload.Schedule == costmodel.Interleaved {
		chunks = max(2, workload.VirtualStages)
	}
	return costmodel.NewSchedule(workload, int64(len(in.Topology.Devices)), chunks)
}

// Looped reports a pipeline whose devices run several stages each.
func (in *Instance) Looped() bool { return in.Piped() && in.Schedule().Chunks > 1 }

// CapsAt are the peaks whose share is at most a share, to the nearest byte: a
// share that was a quotient of integers gives its peak again.
func (in *Instance) CapsAt(share float64) []int64 {
	out := make([]int64, len(in.Topology.Devices))
	for device := range out {
		out[device] = int64(share*float64(in.Topology.Devices[device].Budget()) + 0.5)
	}
	return out
}

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
