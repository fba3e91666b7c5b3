package offload

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// class are sets of units that leave together and are alike.
type class struct {
	sets  [][]int
	bytes int64 // travelling, of one
	frees int64 // what one takes off the devices
}

// newSearch finds what may leave: a pinned unit stays, with all that share its
// device.
func newSearch(in *instance.Instance) (*search, error) {
	sets, err := in.Sets()
	if err != nil {
		return nil, err
	}
	state := &search{in: in}
	type key struct {
		bytes, frees int64
		run          timeline.Summary
		alone        int
	}
	at := map[key]int{}
	for i := range sets {
		if sets[i].Device >= 0 {
			continue
		}
		set, k := sets[i].Units, key{alone: i}
		for _, unitIndex := range set {
			unit := &in.Costs.Units[unitIndex]
			k.bytes += unit.OffloadBytes
			k.frees += unit.Params + unit.Padding
		}
		if k.frees == 0 {
			continue
		}
		if len(set) == 1 {
			k.run, k.alone = timeline.Of(&in.Costs.Units[set[0]]), -1
		}
		c, ok := at[k]
		if !ok || len(state.classes[c].sets) == math.MaxUint16 { // what a count holds
			c = len(state.classes)
			at[k] = c
			state.classes = append(state.classes, class{bytes: k.bytes, frees: k.frees})
		}
		state.classes[c].sets = append(state.classes[c].sets, set)
	}
	slices.SortStableFunc(state.classes, func(a, b class) int { return int(min(1, max(-1, a.bytes-b.bytes))) })
	state.needs()
	return state, nil
}

// needs is what all devices hold together at the worst moment of a forward,
// as if one device ran it all: at that moment their peaks add up to no less.
// Each device that is used has its context besides.
func (state *search) needs() {
	table := state.in.Costs
	var summary timeline.Summary
	for unit := range table.Units {
		summary = summary.Join(timeline.Of(&table.Units[unit]))
	}
	summary.Products = false // a workspace is on some devices, and not on others
	state.least = summary.Static
	if table.Workload.Mode != costmodel.Load {
		state.least = summary.Peak(timeline.Resident{Output: table.OutputBytes})
	}
	for device := range state.in.Topology.Devices {
		dev := &state.in.Topology.Devices[device]
		state.budgets += max(0, dev.Budget()-table.Overhead(device, dev))
	}
}

// short reports that what is held is more than the devices can hold together,
// whatever leaves: nothing fits, and that is proved.
func (state *search) short() bool { return state.stays() > state.budgets }

// stays is what all devices hold together at least, whatever leaves.
func (state *search) stays() int64 {
	least := state.least
	for c := range state.classes {
		least -= int64(len(state.classes[c].sets)) * state.classes[c].frees
	}
	return max(0, least)
}

// average is a largest share that no map is below, whatever leaves.
func (state *search) average() float64 {
	var budgets int64
	for device := range state.in.Topology.Devices {
		budgets += state.in.Topology.Devices[device].Budget()
	}
	return float64(state.stays()) / float64(budgets)
}
