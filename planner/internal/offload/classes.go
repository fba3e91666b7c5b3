package offload

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// class is a group of sets with equal costs. The units of a set leave together.
type class struct {
	sets  [][]int
	bytes int64 // bytes copied per forward, of one set
	frees int64 // device memory that one set frees
}

// newSearch finds the sets that may leave. A pinned unit stays, with all units that share its
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
		if !ok || len(state.classes[c].sets) == math.MaxUint16 { // the limit of a count
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

// needs computes the peak memory of a forward as if one device ran it all. The devices' peaks add
// up to at least that. Each device in use also has its CUDA context.
func (state *search) needs() {
	table := state.in.Costs
	var summary timeline.Summary
	for unit := range table.Units {
		summary = summary.Join(timeline.Of(&table.Units[unit]))
	}
	summary.Products = false // only some devices have a workspace
	state.least = summary.Static
	if table.Workload.Mode != costmodel.Load {
		state.least = summary.Peak(timeline.Resident{Output: table.OutputBytes})
	}
	for device := range state.in.Topology.Devices {
		dev := &state.in.Topology.Devices[device]
		state.budgets += max(0, dev.Budget()-table.Overhead(device, dev))
	}
}

// short reports that nothing fits, whatever units leave: the least memory exceeds all devices
// together.
func (state *search) short() bool { return state.minimum() > state.budgets }

// minimum returns a lower bound on the memory of all devices together, for any units that leave.
func (state *search) minimum() int64 {
	least := state.least
	for c := range state.classes {
		least -= int64(len(state.classes[c].sets)) * state.classes[c].frees
	}
	return max(0, least)
}

// average returns a lower bound of the largest share, for any units that leave.
func (state *search) average() float64 {
	var budgets int64
	for device := range state.in.Topology.Devices {
		budgets += state.in.Topology.Devices[device].Budget()
	}
	return float64(state.minimum()) / float64(budgets)
}
