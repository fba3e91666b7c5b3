package assignmemory

import (
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/assignment"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// placement is the search's current map, as the load of each device.
type placement struct {
	problem *assignment.Problem
	loads   []*assignment.Load
}

// load sets the current map by its counts per device and kind.
func (at *placement) load(counts [][]int) {
	for device, load := range at.loads {
		for kind, count := range counts[device] {
			load.Set(kind, count)
		}
	}
}

// score returns the largest share and the sum of squares.
func (at *placement) score() (value chain.Share, squares float64) {
	value.Budget = 1
	for _, load := range at.loads {
		share := load.Share()
		if share.Cmp(value) > 0 {
			value = share
		}
		squares += at.square(load, share)
	}
	return value, squares
}

// square returns a device's squared share. The overhead of an idle device counts too.
func (at *placement) square(load *assignment.Load, share chain.Share) float64 {
	device := &at.problem.Devices[load.Device]
	level := max(share.Float(), float64(device.Overhead)/float64(device.Budget))
	return level * level
}

func (at *placement) fullest() *assignment.Load {
	return slices.MaxFunc(at.loads, func(x, y *assignment.Load) int { return x.Share().Cmp(y.Share()) })
}

// move takes count items of kind give from one device to another, and back items of kind take in
// return. take is -1 if no items return.
type move struct {
	from, to    *assignment.Load
	give, take  int
	count, back int
}

func (change *move) apply(sign int) {
	change.from.Add(change.give, -sign*change.count)
	change.to.Add(change.give, sign*change.count)
	if change.take >= 0 {
		change.to.Add(change.take, -sign*change.back)
		change.from.Add(change.take, sign*change.back)
	}
}

// maxAtOnce is the most items of a kind that a move tries, apart from all of them.
const maxAtOnce = 4

// moves tries every move of items from one device to another, and every exchange. It ends when
// visit returns false.
func (at *placement) moves(from, to *assignment.Load, visit func(*move) bool) {
	for give, owned := range from.Counts {
		if owned == 0 || !to.Allows(give) {
			continue
		}
		for count := 1; count <= owned; count = more(count, owned) {
			if !visit(&move{from, to, give, -1, count, 0}) {
				return
			}
			for take, there := range to.Counts {
				if there == 0 || take == give || !from.Allows(take) {
					continue
				}
				for back := 1; back <= min(there, maxAtOnce); back++ {
					if count <= maxAtOnce && !visit(&move{from, to, give, take, count, back}) {
						return
					}
				}
			}
		}
	}
}

// more returns the next number of items to try: up to maxAtOnce one by one, then all.
func more(count, owned int) int {
	if count < maxAtOnce {
		return count + 1
	}
	if count < owned {
		return owned
	}
	return owned + 1
}

// manyKinds reports that there are many kinds. The search then takes the first improving move, not
// the best one.
func (at *placement) manyKinds() bool {
	const few = 100
	return len(at.problem.Kinds) > few
}

// seenLike reports that an earlier device is the same and idle too.
func (at *placement) seenLike(load *assignment.Load) bool {
	if load.Items > 0 {
		return false
	}
	for device := range load.Device {
		if at.loads[device].Items == 0 && at.problem.Devices[device].Like == at.problem.Devices[load.Device].Like {
			return true
		}
	}
	return false
}
