package highs

import (
	"fmt"
	"time"
)

// Options limit a solve. The zero value runs to the end, to a gap of nothing
// but HiGHS's own tolerances (1e-6 on rows, 1e-6 on integers).
type Options struct {
	// TimeLimit is in wall time; a context's deadline limits as well.
	TimeLimit time.Duration
	// Gap stops a mixed-integer solve at (objective − bound) / |objective|,
	// AbsoluteGap at objective − bound.
	Gap, AbsoluteGap float64
}

// Result is what HiGHS found. Values are in floating point: integers lie
// within 1e-6 of whole numbers.
type Result struct {
	Status Status
	// Objective is the cost of Values, Bound what no solution is below.
	Objective, Bound float64
	// Values is nil where no feasible solution was found.
	Values []float64
}

// Status says how a solve ended.
type Status int

// The ends of a solve. InfeasibleOrUnbounded is an end of its own: HiGHS does
// not always find out which.
const (
	Unknown Status = iota
	Optimal
	Infeasible
	Unbounded
	InfeasibleOrUnbounded
	TimeLimit
)

// String names the status.
func (status Status) String() string {
	names := [...]string{"unknown", "optimal", "infeasible", "unbounded", "infeasible or unbounded", "time limit"}
	if status < 0 || int(status) >= len(names) {
		return fmt.Sprintf("status %d", int(status))
	}
	return names[status]
}

// statusOf translates kHighsModelStatus of HiGHS's C interface.
func statusOf(code int32) Status {
	switch code {
	case 7:
		return Optimal
	case 8:
		return Infeasible
	case 9:
		return InfeasibleOrUnbounded
	case 10:
		return Unbounded
	case 13:
		return TimeLimit
	default:
		return Unknown
	}
}
