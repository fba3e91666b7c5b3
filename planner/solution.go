package planner

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/phases"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Status says what is proved about a solution. Its strings are for people too.
type Status = certificate.Status

// Optimal: the lower bound equals the value. Feasible: a gap is left. LimitReached: a gap is left,
// and a limit stopped the search.
const (
	Optimal      = certificate.Optimal
	Feasible     = certificate.Feasible
	LimitReached = certificate.LimitReached
)

// Solution is a map with its certificate. The embedded certificate has these fields:
//
//	Value, LowerBound float64 // the minimized quantity, and a bound for every map
//	Bound             string  // the argument for LowerBound
//	Status            Status  // what the two prove
//
// The method Gap returns (Value − LowerBound) / Value; Optimal and Early report bools. Value is the
// largest share of a budget, or under [Time] the seconds of a step. Map is nil if every device runs
// the whole model.
//
// Costs and Topology are the resolved workload and GPUs. Pass them with the map to
// [devicemap.StepSeconds] and [devicemap.NewPlan].
type Solution struct {
	certificate.Certificate
	Map      devicemap.Map
	Devices  []devicemap.Prediction // the peak memory of each device
	Costs    *costmodel.Table
	Topology *costmodel.Topology
	// Objective is the quantity in Value; empty: [Memory].
	Objective Objective
	// Offloaded describes the offloaded units; nil if there are none.
	Offloaded *offloaded
	// EvenProved reports that no map with this Value has a smaller sum of squared shares.
	EvenProved bool
	// Bottleneck is the device with the largest share of its budget, LargestShare, under any
	// objective. The map fits if LargestShare is at most 1.
	Bottleneck   int
	LargestShare float64
	// Verdict is the worst verdict of the devices.
	Verdict devicemap.Verdict
	// Alone names the unit, or the units that share a parameter, that alone set the largest share.
	// The bottleneck then holds nothing else of size, and the largest unit is the bound. Empty
	// otherwise.
	Alone  string
	Probes int
	// Method says how the map was found, and why so. Bounds lists the arguments for the lower bound
	// of the largest share if there are several: Name, the Value it proves, and What sets it (a
	// unit or a moment).
	Method   string
	Bounds   []instance.BoundValue
	Warnings []costmodel.Message
	// Pipeline is the plan of a diffusion pipeline, and Phases lists its devices' memory by phase.
	// Configs are the solutions for all degrees tried, the best first. Nil for other models.
	Pipeline *phases.Plan
	Phases   []devicemap.Phase
	Configs  []*Solution
}

// offloaded describes the offloaded units.
type offloaded struct {
	// Bytes are copied to the first device in each forward. No map copies less than LowerBound.
	// Status says what the two prove.
	Bytes, LowerBound int64
	Status            Status
	// Rest certifies the largest share if these units leave. The solution's own bound holds for any
	// offloaded units.
	Rest certificate.Certificate
	// FromDisk is the part of Bytes that is read from disk.
	FromDisk int64
	Units    int
}
