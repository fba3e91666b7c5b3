package graph

import "github.com/devmap-dev/devmap/planner/internal/solve/certificate"

// Solution is a certified assignment. Its value is the largest load, computed by Score.
type Solution struct {
	certificate.Certificate
	// Place is the device of each node.
	Place []int
	// Method names the algorithm that found the assignment, and why it was chosen.
	Method string
}
