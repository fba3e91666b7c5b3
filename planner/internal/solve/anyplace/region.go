package anyplace

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
	"github.com/devmap-dev/devmap/planner/internal/solve/pairs"
)

const (
	// regionWork is what is done in regions in a round, regionItems how large they are
	// at first, and regionCells and regionLabels how finely a walk tells loads apart.
	regionWork   = 400_000_000
	regionItems  = 24
	regionCells  = 1 << 16
	regionLabels = 16 << 20
)

// regionStates is how wide a region may be: as much is done in many small ones, and more
// found, than in few large ones.
var regionStates = netlist.Width{Step: splitStates.Step, All: splitStates.All / 4}

// regions divides pairs of an answer again and again, in finer cells than usual:
// whole, or where that is too wide a region of them, as large as it may be (large
// neighbourhood search: Shaw, CP 1998). It ends where there is none left to divide.
func (find *finder) regions(ctx context.Context, from member) {
	if find.devices < 2 {
		return
	}
	divide := find.split
	find.unit, find.squarings = from.value, steep
	find.refresh(from.place)
	find.forget()
	find.note()
	divide.states = regionStates
	divide.finely(regionLabels, func() { find.dividing(ctx) })
	divide.states = splitStates
	find.keep("pairs of devices divided anew in regions")
}

// finely does something while loads are told apart in many cells, as so many labels allow.
func (divide *splitter) finely(labels int, do func()) {
	usual := divide.cells
	defer func() { divide.cells = usual }()
	divide.cells = pairs.Cells{Fewest: usual.Fewest, Most: max(usual.Most, regionCells), Labels: labels}
	do()
}

// dividing divides pair after pair.
func (find *finder) dividing(ctx context.Context) {
	divide := find.split
	size, vain, free := regionItems, 0, make([]bool, len(find.Nodes))
	for stop := divide.Work + regionWork; divide.Work < stop && vain <= find.devices*find.devices && !find.over(ctx); {
		device, other := find.twoDevices()
		clear(free)
		taken := find.region(device, other, size, free)
		better, wide := divide.divide(ctx, find.annealer, device, other, free)
		divide.Work += 20 * len(find.Wires)
		switch {
		case better:
			vain = 0
		case wide:
			size = max(2, size*3/4)
		case taken >= size:
			size += 1 + size/8
		default:
			vain++ // it is all that they hold
		}
	}
}

// twoDevices are the busiest device, or any, and one that shares a wire with it, or any.
func (find *finder) twoDevices() (device, other int32) {
	device = int32(find.rng.IntN(find.devices))
	if find.rng.IntN(2) == 0 {
		for candidate := range int32(find.devices) {
			if find.load[candidate] > find.load[device] {
				device = candidate
			}
		}
	}
	if item := find.anyOf(device, device); item >= 0 {
		other = find.neighbour(item)
	}
	if other == device {
		other = (device + 1) % int32(find.devices)
	}
	return device, other
}

// anyOf is an item of one of two devices, −1 where it finds none.
func (find *finder) anyOf(device, other int32) int32 {
	for range 4 * len(find.place) {
		if item := int32(find.rng.IntN(len(find.place))); find.place[item] == device || find.place[item] == other {
			return item
		}
	}
	return -1
}

// region frees about so many connected items of two devices, around one of them, and
// counts them. What is not connected is freed too where there is room.
func (find *finder) region(device, other int32, size int, free []bool) (taken int) {
	first := find.anyOf(device, other)
	if first < 0 {
		return 0
	}
	var front []int32
	join := func(item int32) {
		if here := find.place[item]; len(front) < size && !free[item] && (here == device || here == other) {
			free[item] = true
			front = append(front, item)
		}
	}
	join(first)
	for at := 0; at < len(front) && len(front) < size; at++ {
		swap := at + find.rng.IntN(len(front)-at)
		front[at], front[swap] = front[swap], front[at]
		for _, wire := range find.WiresOf[front[at]] {
			for _, member := range find.Wires[wire].Members {
				join(member)
			}
		}
	}
	for item := range find.place {
		join(int32(item))
	}
	return len(front)
}
