package stages

import (
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Settings are what the solver may be told. The zero value is fine.
type Settings struct {
	// TimeLimit ends the search with the best answer so far; 0: no limit.
	TimeLimit time.Duration
	// MaxSets bounds the down-sets that are held, and with them memory; 0:
	// 200,000. A graph that has more is searched near its order alone.
	MaxSets int
	// Progress, if set, hears of every better answer and bound, from the
	// goroutine that solves.
	Progress func(largest, lowerBound float64)
}

// Solution is a pipeline, certified: its value is the slowest stage's time, as
// Score finds it.
type Solution struct {
	certificate.Certificate
	// Stage and Choice are those of each node; stages count from the first.
	Stage, Choice []int
	Loads         []Load
	// Method names the algorithm, and why it was taken.
	Method string
	// Sets is the number of down-sets searched.
	Sets int
}
