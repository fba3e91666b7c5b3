package anyplace

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// splitter divides two devices' items between them anew, the best way that
// cells of load can tell apart: a walk along the frontier where each label is
// the two loads so far.
type splitter struct {
	*netlist.Netlist
	order []int32 // of all items, thin
	cells int
	// effort is how many cells a walk may have where that is more than usual.
	effort int
	// kept is the label of each cell, from the one that it comes from.
	around around
	kept   []label
	from   []int32
	trace  [][]int32
	// spans are the cells of each state, and bucket of bytes, that have a label.
	spans [][2]int
	// rest is what both loads gain at least behind each state before a step.
	rest [][]float64
	// work counts what was done, in steps of about a nanosecond: it ends the
	// search where a clock would make it differ from run to run.
	work int
}

// newSplitter returns nil where the context ends.
func newSplitter(ctx context.Context, nets *netlist.Netlist, cells int) *splitter {
	divide := &splitter{Netlist: nets, cells: cells}
	if divide.order = nets.ThinOrder(ctx, slices.Repeat([]bool{true}, len(nets.Wires))); divide.order == nil {
		return nil
	}
	return divide
}

// twin is another one, for another goroutine.
func (divide *splitter) twin() *splitter {
	return &splitter{Netlist: divide.Netlist, cells: divide.cells, order: divide.order}
}

// splitStates bounds the work: wider pairs are left to annealing. The states of all
// steps are shared by the pairs, where these are few.
var splitStates = netlist.Width{Step: 1500, All: 240_000}

// width bounds the states of one of a problem's pairs.
func (divide *splitter) width(devices int) netlist.Width {
	const few = 3
	most := splitStates
	most.All /= max(1, min(few, devices*(devices-1)/2))
	return most
}

// split finds sides for the items of two devices, true for the first, that make
// the larger of their loads less than it is. Where free is not nil the others stay
// where they are. It is wide where there would be too many states.
func (divide *splitter) split(ctx context.Context, anneal *annealer, device, other int32, free []bool) (items []int32, side []bool, wide bool) {
	for _, item := range divide.order {
		if (anneal.place[item] == device || anneal.place[item] == other) && (free == nil || free[item]) {
			items = append(items, item)
		}
	}
	least := anneal.energies[device] + anneal.energies[other]
	pair := divide.pair(anneal, device, other)
	if len(items) < 2 || pair.limit < netlist.MinLoad {
		return nil, nil, false
	}
	frontier := divide.layOut(ctx, anneal, device, other, items, &pair)
	if frontier == nil {
		return nil, nil, true
	}
	best, labels := -1, divide.walk(ctx, frontier, pair)
	for i, label := range labels {
		if here := anneal.energy(device, label.one, 0) + anneal.energy(other, label.two, 0); here < least*(1-1e-9) {
			best, least = i, here
		}
	}
	if best < 0 {
		return nil, nil, false
	}
	side = make([]bool, len(items))
	j := int32(best)
	for i := len(items) - 1; i >= 0; i-- {
		from := divide.trace[i][j]
		side[i] = from&1 == 1
		j = from >> 1
	}
	return items, side, false
}

// pair is what two devices have.
func (divide *splitter) pair(anneal *annealer, device, other int32) pair {
	kindOne, kindTwo := anneal.kind[device], anneal.kind[other]
	limit := max(anneal.load[device], anneal.load[other]) * (1 - 1e-9)
	least := anneal.energies[device] + anneal.energies[other]
	return pair{
		one: divide.Time[kindOne], two: divide.Time[kindTwo], freeOne: anneal.Free[kindOne], freeTwo: anneal.Free[kindTwo],
		limit: limit, both: 2 * min(limit, anneal.loadOf(least/2)), all: anneal.bytes[device] + anneal.bytes[other],
		size: divide.Size, roomOne: divide.Capacity[kindOne], roomTwo: divide.Capacity[kindTwo],
	}
}

// polish splits pair after pair until none can be split better. A pair is split once
// for all that its devices hold.
func (divide *splitter) polish(ctx context.Context, anneal *annealer) (some bool) {
	// changes of each device, and as many as its pairs have seen.
	changes, seen := make([]int, anneal.devices), make(map[[2]int32][2]int)
	for changed := true; changed; {
		changed = false
		for device := range int32(anneal.devices) {
			for other := range device {
				if ctx.Err() != nil {
					return some
				}
				pair, now := [2]int32{device, other}, [2]int{changes[device], changes[other]}
				if was, tried := seen[pair]; tried && was == now {
					continue
				}
				if better, _ := divide.divide(ctx, anneal, device, other, nil); better {
					changes[device]++
					changes[other]++
					changed, some = true, true
					now = [2]int{changes[device], changes[other]}
				}
				seen[pair] = now
			}
		}
	}
	return some
}

// divide splits a pair, or what is free of it, where that is better.
func (divide *splitter) divide(ctx context.Context, anneal *annealer, device, other int32, free []bool) (better, wide bool) {
	items, side, wide := divide.split(ctx, anneal, device, other, free)
	if items == nil {
		return false, wide
	}
	before := append([]int32(nil), anneal.place...)
	total := anneal.energies[device] + anneal.energies[other]
	for i, item := range items {
		to := other
		if side[i] {
			to = device
		}
		if anneal.place[item] != to {
			anneal.move(item, to)
		}
	}
	anneal.settle(device, other)
	if anneal.energies[device]+anneal.energies[other] >= total {
		anneal.refresh(before) // by rounding
		return false, false
	}
	return true, false
}
