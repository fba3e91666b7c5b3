package chain

import (
	"errors"
	"fmt"
	"math"
)

// Problem is a chain, the devices it goes on, and what they would hold.
type Problem struct {
	// Items is the length of the chain, items 0 to Items-1 in order.
	Items int

	// Budgets holds the bytes each device may use, in device order. All are
	// positive and their sum fits an int64.
	Budgets []int64

	// Groups is the number of groups, at most 64. A group is placed whole on
	// one device, outside the order of the chain.
	Groups int

	// Peak returns the bytes device d holds at its peak with the items [a, b)
	// and the groups whose bit is set in groups. It is not negative, takes
	// O(1), and never falls when the run is widened or a group is added. For
	// a == b it does not depend on a. One Solve calls it from one goroutine.
	Peak func(d, a, b int, groups uint64) int64

	// Floor, if not nil, is at most Peak and never falls when the run is
	// widened, in O(1); Peak then may, every device must have an item, and
	// there are no groups (see stages).
	Floor func(d, a, b int) int64

	// Alike, if not nil, numbers the devices so that those of one number have
	// one budget and one Peak: what is asked of one is not asked of the others.
	Alike []int

	// Pins holds the device of each item, -1 where it is free; nil pins none.
	Pins []int

	// GroupPins holds the device of each group, likewise.
	GroupPins []int

	// Follow holds, per group, the items that must sit on its device.
	Follow [][]int

	// Additive says that Peak is a sum over the items of the run, which may
	// differ from device to device, plus a part that depends on the device
	// and the groups only. It makes the average a bound and the second
	// objective fast (see divide).
	Additive bool
}

// check reports every fault of the problem's form. Pins that contradict each
// other are found later, by newInstance.
func (p *Problem) check() error {
	var f faults
	f.add(p.Items < 0, "%d items", p.Items)
	f.add(len(p.Budgets) == 0, "no devices")
	f.add(p.Groups < 0 || p.Groups > 64, "%d groups, want 0 to 64", p.Groups)
	f.add(p.Peak == nil, "no Peak function")
	f.add(p.Floor != nil && p.Groups > 0, "%d groups beside a Floor", p.Groups)
	f.budgets(p.Budgets)
	f.add(p.Alike != nil && len(p.Alike) != len(p.Budgets), "%d numbers of alike devices for %d devices", len(p.Alike), len(p.Budgets))
	f.pins("item", p.Pins, p.Items, len(p.Budgets))
	f.pins("group", p.GroupPins, p.Groups, len(p.Budgets))
	f.add(p.Follow != nil && len(p.Follow) != p.Groups, "%d Follow lists for %d groups", len(p.Follow), p.Groups)
	for g, items := range p.Follow {
		for _, i := range items {
			f.add(i < 0 || i >= p.Items, "group %d is followed by item %d of %d", g, i, p.Items)
		}
	}
	return errors.Join(f...)
}

type faults []error

func (f *faults) add(wrong bool, format string, args ...any) {
	if wrong {
		*f = append(*f, fmt.Errorf("chain: "+format, args...))
	}
}

func (f *faults) budgets(budgets []int64) {
	total := int64(0)
	for d, b := range budgets {
		over := b > 0 && total > math.MaxInt64-b
		f.add(b <= 0, "budget of device %d is %d bytes", d, b)
		f.add(over, "budgets up to device %d add up to more than an int64 holds", d)
		if b <= 0 || over {
			continue
		}
		total += b
	}
}

func (f *faults) pins(what string, pins []int, want, devices int) {
	f.add(pins != nil && len(pins) != want, "%d %s pins for %d of them", len(pins), what, want)
	for i, d := range pins {
		f.add(d < -1 || d >= devices, "%s %d is pinned to device %d of %d", what, i, d, devices)
	}
}
