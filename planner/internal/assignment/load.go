package assignment

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// Device is a device in the search.
type Device struct {
	Budget, Overhead int64
	Resident         timeline.Resident
	Idle             int64 // bytes without units
	Like             int   // the first device that is the same and, like it, has no pins; its own index if there is none
}

func (problem *Problem) readDevices() {
	in := problem.In
	pinned := make(map[int]bool)
	for i := range problem.Items {
		pinned[problem.Items[i].Device] = true
	}
	for deviceIndex := range in.Topology.Devices {
		dev := &in.Topology.Devices[deviceIndex]
		device := Device{Budget: dev.Budget(), Overhead: in.Costs.Overhead(deviceIndex, dev), Resident: timeline.ResidentOn(in.Costs, deviceIndex, dev, false), Like: deviceIndex}
		if device.Resident.Output > 0 { // outputs are there without units too
			device.Idle = timeline.Summary{}.Peak(timeline.ResidentOn(in.Costs, deviceIndex, dev, true)) + device.Overhead
		}
		for earlierIndex := range problem.Devices {
			earlier := &problem.Devices[earlierIndex]
			if !pinned[deviceIndex] && !pinned[earlierIndex] && earlier.Budget == device.Budget && earlier.Overhead == device.Overhead && earlier.Resident == device.Resident && earlier.Idle == device.Idle {
				device.Like = earlierIndex
				break
			}
		}
		problem.Devices = append(problem.Devices, device)
	}
}

// Load is the units on one device: the number of each kind, and a segment tree of their runs in
// time order. A change costs O(log positions).
type Load struct {
	problem *Problem
	Device  int
	Counts  []int
	Items   int // sum of counts
	tree    []timeline.Summary
	leaves  int
}

// NewLoad returns the load of an empty device.
func (problem *Problem) NewLoad(device int) *Load {
	load := &Load{problem: problem, Device: device, Counts: make([]int, len(problem.Kinds)), leaves: 1}
	for load.leaves < len(problem.Positions) {
		load.leaves *= 2
	}
	load.tree = make([]timeline.Summary, 2*load.leaves)
	return load
}

// Set sets the device's number of items of a kind.
func (load *Load) Set(kind, count int) {
	if load.Counts[kind] == count {
		return
	}
	load.Items += count - load.Counts[kind]
	load.Counts[kind] = count
	for _, at := range load.problem.Kinds[kind].Positions {
		i := load.leaves + at
		load.tree[i] = load.at(&load.problem.Positions[at])
		for i /= 2; i > 0; i /= 2 {
			load.tree[i] = load.tree[2*i].Join(load.tree[2*i+1])
		}
	}
}

// at returns the summary of the device's units at a place in time.
func (load *Load) at(place *Position) timeline.Summary {
	if len(place.Kinds) == 1 {
		return place.Summaries[load.Counts[place.Kinds[0]]]
	}
	index := 0
	for i, kind := range place.Kinds {
		index += load.Counts[kind] * place.strides[i]
	}
	return place.Summaries[index]
}

// Add adds count to the number of items of a kind; count may be negative.
func (load *Load) Add(kind, count int) { load.Set(kind, load.Counts[kind]+count) }

// Need returns the device's peak plus overhead, in bytes.
func (load *Load) Need() int64 {
	device := &load.problem.Devices[load.Device]
	if load.Items == 0 {
		return device.Idle
	}
	return load.tree[1].Peak(device.Resident) + device.Overhead
}

// Share returns the device's need as a fraction of its budget.
func (load *Load) Share() chain.Share {
	return chain.Share{Peak: load.Need(), Budget: load.problem.Devices[load.Device].Budget}
}

// Allows reports whether a kind may be on the device.
func (load *Load) Allows(kind int) bool {
	pin := load.problem.Kinds[kind].Pin
	return pin < 0 || pin == load.Device
}

// LargestItem returns the kind that alone has the largest share on its best device, and that share.
// The kind is −1 if an empty device has a larger share.
func (problem *Problem) LargestItem() (share chain.Share, kind int) {
	share, kind = chain.Share{Peak: 0, Budget: 1}, -1
	best := make([]chain.Share, len(problem.Kinds))
	for device := range problem.Devices {
		share = chain.MaxShare(share, chain.Share{Peak: problem.Devices[device].Idle, Budget: problem.Devices[device].Budget})
		if problem.Devices[device].Like != device {
			continue
		}
		load := problem.NewLoad(device)
		for i := range problem.Kinds {
			if !load.Allows(i) {
				continue
			}
			load.Set(i, 1)
			if got := load.Share(); best[i].Budget == 0 || got.Cmp(best[i]) < 0 {
				best[i] = got
			}
			load.Set(i, 0)
		}
	}
	for i := range best {
		if best[i].Cmp(share) > 0 {
			share, kind = best[i], i
		}
	}
	return share, kind
}

// BySize lists the kinds by the memory of one item, the largest first.
func (problem *Problem) BySize() []int {
	need := make([]int64, len(problem.Kinds))
	order := make([]int, len(need))
	for kind := range need {
		order[kind] = kind
		load := problem.NewLoad(max(0, problem.Kinds[kind].Pin))
		load.Set(kind, 1)
		need[kind] = load.Need()
	}
	slices.SortStableFunc(order, func(x, y int) int {
		switch {
		case need[x] > need[y]:
			return -1
		case need[x] < need[y]:
			return 1
		}
		return x - y
	})
	return order
}
