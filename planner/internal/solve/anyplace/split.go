package anyplace

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// splitter divides two devices' items between them anew, the best way that
// cells of load can tell apart: a walk along the frontier where each label is
// the two loads so far.
type splitter struct {
	*netlist.Netlist
	order []int32 // of all items, thin
	used  []bool
	cells int
	// one is the first device's load in each cell, two the second's.
	one, two []float64
	from     []int32
	trace    [][]int32
	// spans are the cells of each state that have a load.
	spans [][2]int
	// rest is what both loads gain at least behind each state before a step.
	rest [][]float64
	// work counts what was done, in steps of about a nanosecond: it ends the
	// search where a clock would make it differ from run to run.
	work int
}

// newSplitter returns nil where the context ends.
func newSplitter(ctx context.Context, nets *netlist.Netlist, cells int) *splitter {
	divide := &splitter{Netlist: nets, cells: cells, used: make([]bool, len(nets.Wires))}
	for wire := range divide.used {
		divide.used[wire] = true
	}
	if divide.order = nets.ThinOrder(ctx, divide.used); divide.order == nil {
		return nil
	}
	return divide
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
// the larger of their loads less than it is.
func (divide *splitter) split(ctx context.Context, anneal *annealer, device, other int32) (items []int32, side []bool) {
	for _, item := range divide.order {
		if anneal.place[item] == device || anneal.place[item] == other {
			items = append(items, item)
		}
	}
	limit := max(anneal.load[device], anneal.load[other]) * (1 - 1e-9)
	best, least := -1, anneal.energies[device]+anneal.energies[other]
	pair := pair{
		one: divide.Time[anneal.kind[device]], two: divide.Time[anneal.kind[other]],
		freeOne: anneal.Free[anneal.kind[device]], freeTwo: anneal.Free[anneal.kind[other]],
		limit: limit, both: 2 * min(limit, anneal.loadOf(least/2)),
	}
	if len(items) < 2 || limit < netlist.MinLoad {
		return nil, nil
	}
	frontier := divide.LayOut(ctx, items, divide.used, divide.width(anneal.devices), pair.budget(items))
	if frontier == nil {
		return nil, nil
	}
	labels := divide.walk(ctx, frontier, pair)
	for i, label := range labels {
		if here := anneal.energy(device, label[0], 0) + anneal.energy(other, label[1], 0); here < least*(1-1e-9) {
			best, least = i, here
		}
	}
	if best < 0 {
		return nil, nil
	}
	side = make([]bool, len(items))
	j := int32(best)
	for i := len(items) - 1; i >= 0; i-- {
		from := divide.trace[i][j]
		side[i] = from&1 == 1
		j = from >> 1
	}
	return items, side
}

// polish splits pair after pair until none can be split better. A pair is split once
// for all that its devices hold.
func (divide *splitter) polish(ctx context.Context, anneal *annealer) (better bool) {
	// changes of each device, and as many as its pairs have seen.
	changes, seen := make([]int, anneal.devices), make(map[[2]int32][2]int)
	for changed := true; changed; {
		changed = false
		for device := range int32(anneal.devices) {
			for other := range device {
				if ctx.Err() != nil {
					return better
				}
				pair, now := [2]int32{device, other}, [2]int{changes[device], changes[other]}
				if was, tried := seen[pair]; tried && was == now {
					continue
				}
				if divide.divide(ctx, anneal, device, other) {
					changes[device]++
					changes[other]++
					changed, better = true, true
					now = [2]int{changes[device], changes[other]}
				}
				seen[pair] = now
			}
		}
	}
	return better
}

// divide splits a pair where that is better.
func (divide *splitter) divide(ctx context.Context, anneal *annealer, device, other int32) (better bool) {
	items, side := divide.split(ctx, anneal, device, other)
	if items == nil {
		return false
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
		anneal.refresh(before) // a capacity is in the way
		return false
	}
	return true
}
