package anyplace

import (
	"context"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
	"github.com/devmap-dev/devmap/planner/internal/solve/pairs"
)

// splitter divides two devices' items between them anew (package pairs).
type splitter struct {
	*netlist.Netlist
	*pairs.Divider
	order []int32 // of all items, thin
	used  []bool
	cells int // that tell the loads of a pair apart
}

// newSplitter returns nil where the context ends.
func newSplitter(ctx context.Context, nets *netlist.Netlist, cells int) *splitter {
	divide := &splitter{Netlist: nets, Divider: pairs.New(), cells: cells, used: make([]bool, len(nets.Wires))}
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
	pair := &pairs.Pair{
		One: divide.side(anneal, device), Two: divide.side(anneal, other), Size: divide.Size,
		Limit: limit, Both: 2 * min(limit, anneal.loadOf(least/2)),
	}
	if len(items) < 2 || limit < netlist.MinLoad {
		return nil, nil
	}
	frontier := divide.LayOut(ctx, items, divide.used, divide.width(anneal.devices), pair.Budget(items))
	if frontier == nil {
		return nil, nil
	}
	labels := divide.Walk(ctx, frontier, pair, divide.cells)
	for i, label := range labels {
		if here := anneal.energy(device, label.One, 0) + anneal.energy(other, label.Two, 0); here < least*(1-1e-9) {
			best, least = i, here
		}
	}
	if best < 0 {
		return nil, nil
	}
	return items, divide.Sides(best, len(items))
}

// side is a device in a pair. Bytes are left to the energy: a device that is over its
// capacity may stay so.
func (divide *splitter) side(anneal *annealer, device int32) pairs.Side {
	kind := anneal.kind[device]
	return pairs.Side{Time: divide.Time[kind], Free: anneal.Free[kind], Room: math.Inf(1)}
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
