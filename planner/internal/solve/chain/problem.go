package chain

import (
	"errors"
	"fmt"
	"math"
)

// Problem is a chain, its devices, and their peaks.
type Problem struct {
	// Items is the length of the chain, items 0 to Items-1 in order.
	Items int

	// Budgets are the bytes of each device, in device order. All are positive and their sum fits an
	// int64.
	Budgets []int64

	// Groups is the number of groups, at most 64. A group is on one device, outside the order of
	// the chain.
	Groups int

	// Peak returns the peak bytes of a device with the items [a, b) and the groups whose bit is set
	// in groups. It is not negative, takes O(1), and never falls when the run grows or a group is
	// added. For a == b it does not depend on a. Solve calls it from one goroutine.
	Peak func(device, a, b int, groups uint64) int64

	// Floor, if not nil, is at most Peak, takes O(1), and never falls when the run grows or a group
	// is added. Peak may then fall (see stages).
	Floor func(device, a, b int, groups uint64) int64

	// Filled: every device must have an item, and there are no groups.
	Filled bool

	// Class, if not nil, numbers the devices' classes. Devices of one class have the same budget
	// and Peak, so Solve calls Peak for only one of them.
	Class []int

	// Pins are the devices of the items, -1 if free; nil pins none.
	Pins []int

	// GroupPins are the devices of the groups, in the same form.
	GroupPins []int

	// Follow lists, for each group, the items that must be on its device.
	Follow [][]int

	// Additive says that Peak is a sum over the items of the run, which may differ by device, plus
	// a part for the device and its groups. The average is then a bound, and the second objective
	// is fast (see divide).
	Additive bool
}

// check reports every malformed field. newInstance finds pins that contradict each other.
func (problem *Problem) check() error {
	var refusal faults
	refusal.add(problem.Items < 0, "%d items", problem.Items)
	refusal.add(len(problem.Budgets) == 0, "no devices")
	refusal.add(problem.Groups < 0 || problem.Groups > 64, "%d groups, want 0 to 64", problem.Groups)
	refusal.add(problem.Peak == nil, "no Peak function")
	refusal.add(problem.Filled && problem.Floor == nil, "every device is to be filled, and there is no Floor")
	refusal.add(problem.Filled && problem.Groups > 0, "%d groups where every device is to be filled", problem.Groups)
	refusal.budgets(problem.Budgets)
	refusal.add(problem.Class != nil && len(problem.Class) != len(problem.Budgets), "%d numbers of alike devices for %d devices", len(problem.Class), len(problem.Budgets))
	refusal.pins("item", problem.Pins, problem.Items, len(problem.Budgets))
	refusal.pins("group", problem.GroupPins, problem.Groups, len(problem.Budgets))
	refusal.add(problem.Follow != nil && len(problem.Follow) != problem.Groups, "%d Follow lists for %d groups", len(problem.Follow), problem.Groups)
	for group, items := range problem.Follow {
		for _, i := range items {
			refusal.add(i < 0 || i >= problem.Items, "group %d is followed by item %d of %d", group, i, problem.Items)
		}
	}
	return errors.Join(refusal...)
}

type faults []error

func (refusal *faults) add(wrong bool, format string, args ...any) {
	if wrong {
		*refusal = append(*refusal, fmt.Errorf("chain: "+format, args...))
	}
}

func (refusal *faults) budgets(budgets []int64) {
	total := int64(0)
	for device, budget := range budgets {
		over := budget > 0 && total > math.MaxInt64-budget
		refusal.add(budget <= 0, "budget of device %d is %d bytes", device, budget)
		refusal.add(over, "budgets up to device %d add up to more than an int64 holds", device)
		if budget <= 0 || over {
			continue
		}
		total += budget
	}
}

func (refusal *faults) pins(what string, pins []int, want, devices int) {
	refusal.add(pins != nil && len(pins) != want, "%d %s pins for %d of them", len(pins), what, want)
	for i, device := range pins {
		refusal.add(device < -1 || device >= devices, "%s %d is pinned to device %d of %d", what, i, device, devices)
	}
}

// Conflict returns the [*ConflictError] of pins that no map satisfies, for any peaks; nil if some
// map satisfies them.
func (problem *Problem) Conflict() error {
	_, err := newInstance(problem)
	return err
}
