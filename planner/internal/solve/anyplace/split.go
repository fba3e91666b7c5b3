package anyplace

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
	"github.com/devmap-dev/devmap/planner/internal/solve/pairs"
)

// splitter divides two devices' items between them anew (package pairs).
type splitter struct {
	*netlist.Netlist
	*pairs.Divider
	order  []int32 // of all items, thin
	cells  pairs.Cells
	states netlist.Width // of all of a problem's pairs
	around around
	beside int // states of a step that a walk may have, beside the answer; 0: all
}

// newSplitter returns nil where the context ends.
func newSplitter(ctx context.Context, nets *netlist.Netlist, cells int) *splitter {
	divide := &splitter{
		Netlist: nets, Divider: pairs.New(), cells: pairs.Cells{Fewest: cells, Most: cells}, states: splitStates,
	}
	if divide.order = nets.ThinOrder(ctx, slices.Repeat([]bool{true}, len(nets.Wires))); divide.order == nil {
		return nil
	}
	return divide
}

// twin is another one, for another goroutine.
func (divide *splitter) twin() *splitter {
	return &splitter{
		Netlist: divide.Netlist, Divider: pairs.New(), cells: divide.cells, states: divide.states, order: divide.order,
	}
}

// splitStates bounds the work: wider pairs are left to annealing. The states of all
// steps are shared by the pairs, where these are few.
var splitStates = netlist.Width{Step: 1500, All: 240_000}

// width bounds the states of one of a problem's pairs.
func (divide *splitter) width(devices int) netlist.Width {
	const few = 3
	most := divide.states
	most.All /= max(1, min(few, devices*(devices-1)/2))
	return most
}

// split finds sides for the items of two devices, true for the first, that make
// the larger of their loads less than it is. Where free is not nil the others stay
// where they are. It is wide where there would be too many states.
func (divide *splitter) split(
	ctx context.Context, anneal *annealer, device, other int32, free []bool,
) (items []int32, side []bool, wide bool) {
	for _, item := range divide.order {
		if (anneal.place[item] == device || anneal.place[item] == other) && (len(free) == 0 || free[item]) {
			items = append(items, item)
		}
	}
	least := anneal.energies[device] + anneal.energies[other]
	pair := divide.pair(anneal, device, other)
	if len(items) < 2 || pair.Limit < netlist.MinLoad {
		return nil, nil, false
	}
	frontier := divide.layOut(ctx, anneal, device, other, items, pair)
	if frontier == nil {
		return nil, nil, true
	}
	if anneal.squarings == steep {
		// The busier of the two is all that counts.
		sides, loads := divide.Meet(ctx, frontier, pair, divide.cells)
		if sides == nil || anneal.energy(device, loads.One, 0)+anneal.energy(other, loads.Two, 0) >= least*(1-1e-9) {
			return nil, nil, false
		}
		return items, sides, false
	}
	best := -1
	for i, label := range divide.Walk(ctx, frontier, pair, divide.cells) {
		if here := anneal.energy(device, label.One, 0) + anneal.energy(other, label.Two, 0); here < least*(1-1e-9) {
			best, least = i, here
		}
	}
	if best < 0 {
		return nil, nil, false
	}
	return items, divide.Sides(best, len(items)), false
}

// pair is what two devices have.
func (divide *splitter) pair(anneal *annealer, device, other int32) *pairs.Pair {
	limit := max(anneal.load[device], anneal.load[other]) * (1 - 1e-9)
	least := anneal.energies[device] + anneal.energies[other]
	return &pairs.Pair{
		One: divide.side(anneal.kind[device]), Two: divide.side(anneal.kind[other]), Size: divide.Size,
		Limit: limit, Both: 2 * min(limit, anneal.loadOf(least/2)),
	}
}

// side is a device of a kind that holds nothing yet.
func (divide *splitter) side(kind int) pairs.Side {
	return pairs.Side{Time: divide.Time[kind], Free: divide.Free[kind], Room: divide.Capacity[kind]}
}

// polish splits pair after pair until none can be split better. A pair is split once
// for all that its devices hold.
func (divide *splitter) polish(ctx context.Context, anneal *annealer) {
	// changes of each device, and as many as its pairs have seen.
	changes, seen := make([]int, anneal.devices), make(map[[2]int32][2]int)
	for changed := true; changed; {
		changed = false
		for device := range int32(anneal.devices) {
			for other := range device {
				if ctx.Err() != nil {
					return
				}
				pair, now := [2]int32{device, other}, [2]int{changes[device], changes[other]}
				if was, tried := seen[pair]; tried && was == now {
					continue
				}
				if better, _ := divide.divide(ctx, anneal, device, other, nil); better {
					changes[device]++
					changes[other]++
					changed = true
					now = [2]int{changes[device], changes[other]}
				}
				seen[pair] = now
			}
		}
	}
}

// divide splits a pair, or what is free of it, where that is better.
func (divide *splitter) divide(
	ctx context.Context, anneal *annealer, device, other int32, free []bool,
) (better, wide bool) {
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
