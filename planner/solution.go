package planner

import "github.com/devmap-dev/devmap/planner/devicemap"

// Status says what is proved about a solution.
type Status string

// The statuses.
const (
	Optimal      Status = "optimal"       // no map has a smaller largest share
	Feasible     Status = "feasible"      // it fits; the gap is not closed
	LimitReached Status = "limit reached" // stopped early: the best so far
)

// Solution is a map with its certificate.
type Solution struct {
	Map     devicemap.Map
	Devices []devicemap.Prediction
	// Objective is what Value is of; empty: [Memory].
	Objective Objective
	// Value is the largest share of a budget, or under [Time] the seconds of
	// a step; LowerBound is what no map can be below, Bound the argument.
	Value, LowerBound float64
	Bound             string
	Status            Status
	// Offloaded is what left the devices; nil where nothing did.
	Offloaded *Offloaded
	// Even reports that the sum of squared shares is proved smallest among
	// maps with this Value.
	Even bool
	// Bottleneck is the device with the largest share.
	Bottleneck int
	Probes     int
	// Method is how the map was found, and why so; Bounds are the arguments
	// for the lower bound, where more than one was worked out.
	Method   string
	Bounds   []BoundValue
	Warnings []string
}

// Gap is (Value − LowerBound) / Value.
func (s *Solution) Gap() float64 {
	if s.Value <= 0 {
		return 0
	}
	return (s.Value - s.LowerBound) / s.Value
}

// Imbalance is the largest allocated peak over the mean of all devices.
func (s *Solution) Imbalance() float64 { return devicemap.Imbalance(s.Devices) }
