package partition

import "time"

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
