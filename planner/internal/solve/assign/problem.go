package assign

import (
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Problem is items and the devices they go on. Sizes are in bytes, or any unit
// of whole numbers.
type Problem struct {
	Sizes []int64
	// Budgets are what the devices' loads are divided by. All 1 makes the
	// value the largest load itself.
	Budgets []int64
	// Fixed is what each device holds already; nil: nothing.
	Fixed []int64
}

// Settings limit a search. The zero value searches until the proof is done or
// the context ends.
type Settings struct {
	// Nodes is how many devices may be filled in all of the search; the same
	// number gives the same answer on every machine. 0: no limit.
	Nodes int64
	// Gap is the (Value − LowerBound) / Value that is good enough.
	Gap float64
}

// Solution is an assignment with its certificate.
type Solution struct {
	// Device is the device of each item; Load what each device then holds,
	// Fixed included.
	Device []int
	Load   []int64
	// Value is the largest (fixed + sizes) / budget. It is optimal where it
	// meets the bound, as exact fractions do; the search ended early where the
	// context or Settings.Nodes cut it short. Where Settings.Gap was reached
	// first, neither.
	certificate.Certificate
	// Nodes is how many devices the search filled.
	Nodes int64
}

// maxSum keeps sums of sizes and products by small numbers inside 64 bits.
const maxSum = int64(1) << 60

// Check reports every fault of the problem's form.
func (problem *Problem) Check() error {
	var faults []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	wrong(len(problem.Budgets) == 0, "no devices: Budgets is empty")
	wrong(problem.Fixed != nil && len(problem.Fixed) != len(problem.Budgets), "%d fixed loads for %d devices", len(problem.Fixed), len(problem.Budgets))
	total := int64(0)
	add := func(x int64) {
		if x > 0 {
			total = min(total+min(x, maxSum), maxSum)
		}
	}
	for i, size := range problem.Sizes {
		wrong(size < 0, "sizes[%d]: %d is negative", i, size)
		add(size)
	}
	for device, budget := range problem.Budgets {
		wrong(budget <= 0, "budgets[%d]: %d is not positive", device, budget)
	}
	for device, f := range problem.Fixed {
		wrong(f < 0, "fixed[%d]: %d is negative", device, f)
		add(f)
	}
	wrong(total >= maxSum, "sizes and fixed loads add up to 2^60 or more; use a larger unit")
	return errors.Join(faults...)
}
