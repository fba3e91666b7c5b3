package planner

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/phases"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Status says what is proved about a solution: it is a string, for people too.
type Status = certificate.Status

// The statuses: the lower bound meets the value; the gap is not closed; nor is
// it, as the search was stopped early.
const (
	Optimal      = certificate.Optimal
	Feasible     = certificate.Feasible
	LimitReached = certificate.LimitReached
)

// Solution is a map with its certificate. This embeds
//
//	Value, LowerBound float64 // what is minimised, and what no map is below
//	Bound             string  // the argument for LowerBound
//	Status            Status  // what the two prove
//
// and the methods Gap() float64, (Value − LowerBound) / Value, Optimal() bool and
// Early() bool. Value is the largest share of a budget, or under [Time] the
// seconds of a step. Where every device runs the whole model, Map is nil.
//
// Costs and Topology are what it was solved for: what [Plan] made of the
// workload and of GPUs that are given by name. [devicemap.StepSeconds] takes
// them with the map, and so does [devicemap.NewPlan].
type Solution struct {
	certificate.Certificate
	Map      devicemap.Map
	Devices  []devicemap.Prediction // what each holds at its peak
	Costs    *costmodel.Table
	Topology *costmodel.Topology
	// Objective is what Value is of; empty: [Memory].
	Objective Objective
	// Offloaded is what left the devices; nil where nothing did.
	Offloaded *offloaded
	// EvenProved reports that the sum of squared shares is proved smallest among
	// maps with this Value.
	EvenProved bool
	// Bottleneck is the device with the largest share of its budget by the walk,
	// LargestShare, whatever the objective: it fits if that is at most 1.
	Bottleneck   int
	LargestShare float64
	// Verdict is the worst of the devices'.
	Verdict devicemap.Verdict
	// Alone names the unit, or the units that share a parameter, which alone
	// sets the largest share: the bottleneck holds nothing else of weight, and
	// the bound is the largest unit. Empty where it is not so.
	Alone  string
	Probes int
	// Method is how the map was found, and why so; Bounds are the arguments
	// for the lower bound of the largest share if more than one was computed, by
	// Name: the Value that it proves, and What it rests on, a unit or a moment.
	Method   string
	Bounds   []instance.BoundValue
	Warnings []costmodel.Message
	// Pipeline is what a diffusion pipeline was planned as, and Phases are what
	// its devices hold, phase by phase; Ways are the solutions for all degrees
	// that were tried, the best first. Nil for other models.
	Pipeline *phases.Plan
	Phases   []devicemap.Phase
	Configs  []*Solution
}

// offloaded is what left the devices.
type offloaded struct {
	// Bytes are copied to the first device for a forward; no map has less
	// than LowerBound to copy. Status is what is proved of the two.
	Bytes, LowerBound int64
	Status            Status
	// Stays is what is proved of the largest share where these units leave;
	// the solution's own bound is for whatever leaves.
	Rest certificate.Certificate
	// FromDisk of them are read from disk.
	FromDisk int64
	Units    int
}
