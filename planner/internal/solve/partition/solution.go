package partition

import proof "github.com/devmap-dev/devmap/planner/internal/solve/certificate"

// Solution is an assignment with its certificate.
type Solution struct {
	// Place is the device of each node.
	Place []int
	// Largest is the largest load, as Score finds it. LowerBound is what no
	// assignment of this form can be below, Bound the argument for it.
	Largest, LowerBound float64
	Bound               string
	// Status follows from the two. Optimal: they meet. Stopped: they do not,
	// and the search was cut short.
	Status           proof.Status
	Optimal, Stopped bool
	// Method names the algorithm that found the assignment, and why it was
	// taken.
	Method string
}

// Gap is (Largest − LowerBound) / Largest.
func (s *Solution) Gap() float64 { return proof.Gap(s.Largest, s.LowerBound) }
