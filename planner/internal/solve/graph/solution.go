package graph

import "github.com/devmap-dev/devmap/planner/internal/solve/certificate"

// Solution is an assignment, certified: its value is the largest load, as
// Score finds it.
type Solution struct {
	certificate.Certificate
	// Place is the device of each node.
	Place []int
	// Method names the algorithm that found the assignment, and why it was
	// taken.
	Method string
}
