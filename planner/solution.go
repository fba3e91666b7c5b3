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
	// Value is the largest share of a budget, LowerBound what no map can be
	// below, Bound the argument for it.
	Value, LowerBound float64
	Bound             string
	Status            Status
	// Even reports that the sum of squared shares is proved smallest among
	// maps with this Value.
	Even bool
	// Bottleneck is the device with the largest share.
	Bottleneck int
	Probes     int
	Warnings   []string
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
