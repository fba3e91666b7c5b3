package graph

import (
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Settings are what a solver may be told. The zero value is fine.
type Settings struct {
	// TimeLimit ends the search with the best answer so far; 0: no limit.
	TimeLimit time.Duration
	// Seed makes a random search repeatable.
	Seed uint64
	// Progress, if set, hears of every better answer and bound, from the
	// goroutine that solves.
	Progress func(largest, lowerBound float64)
}

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
