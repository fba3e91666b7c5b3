package instance

import (
	"context"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// devices is the memory of every device without its units.
type devices struct {
	residents []timeline.Resident
	// Overhead is the memory of the device's process. Idle is the memory counted for a device
	// without units.
	Overhead, Idle []int64
}

func newDevices(in *Instance) devices {
	var out devices
	for deviceIndex := range in.Topology.Devices {
		device := &in.Topology.Devices[deviceIndex]
		overhead := in.Costs.Overhead(deviceIndex, device)
		out.residents = append(out.residents, timeline.ResidentOn(in.Costs, deviceIndex, device, false))
		out.Overhead = append(out.Overhead, overhead)
		out.Idle = append(out.Idle, timeline.Summary{}.Peak(timeline.ResidentOn(in.Costs, deviceIndex, device, true))+overhead)
	}
	return out
}

// MapPeaks computes the peak of a device in a device map.
type MapPeaks struct {
	*Items
	devices
	costs func(first, end int) timeline.Summary // by positions in Order
	tied  []tiedUnit                            // units of groups, ascending
	// arena replaces costs for engines with an arena. runs is scratch space for one device.
	arena    timeline.Ranks
	schedule costmodel.Schedule
	runs     []costmodel.Interval
	// parts caches joined costs that depend on the other units of a device.
	parts map[partKey]timeline.Summary
	// additive: peaks are sums, and the device's own part is the same if it is idle.
	additive bool
}

// tiedUnit is a unit of a group: its position in the chain's order, and its run.
type tiedUnit struct {
	unit, group, position int
	run                   timeline.Summary
}

// NewMapPeaks prepares the sums in O(units · log units).
func NewMapPeaks(items *Items) *MapPeaks {
	in := items.In
	out := &MapPeaks{Items: items, devices: newDevices(in), costs: newChain(items), additive: in.Costs.Additive}
	if in.Costs.Part != nil {
		out.parts = make(map[partKey]timeline.Summary)
	}
	position := 0
	for unit, group := range items.GroupOf {
		if group < 0 {
			position++
			continue
		}
		out.tied = append(out.tied, tiedUnit{unit, group, position, timeline.Of(&in.Costs.Units[unit])})
	}
	if in.rules().Arena {
		out.arena = timeline.NewRanks(in.Costs)
		out.schedule = costmodel.NewSchedule(&in.Costs.Workload, int64(len(in.Topology.Devices)), 1)
	}
	return out
}

// newChain returns the costs of ranges of the items' units, in order.
func newChain(items *Items) func(first, end int) timeline.Summary {
	units := make([]costmodel.Unit, len(items.Order))
	for i, unit := range items.Order {
		units[i] = items.In.Costs.Units[unit]
	}
	return timeline.Stretches(units)
}

// Peak returns the peak of a device with items [a, b) and a set of groups. It joins their units in
// execution order. Overhead counts on an idle device too, so that an idle device gains nothing.
func (peaks *MapPeaks) Peak(device, a, b int, groups uint64) int64 {
	if a >= b && groups == 0 {
		return peaks.Idle[device]
	}
	if peaks.arena != nil {
		return peaks.arena.Peak(peaks.rank(a, b, groups), peaks.residents[device].Workspace) + peaks.Overhead[device]
	}
	if peaks.parts != nil {
		return peaks.part(a, b, groups, true).Peak(peaks.residents[device]) + peaks.Overhead[device]
	}
	at, end := peaks.Start[a], peaks.Start[b]
	if groups == 0 { // nothing to join, the solver's most frequent call
		return peaks.costs(at, end).Peak(peaks.residents[device]) + peaks.Overhead[device]
	}
	var run timeline.Summary
	for i := range peaks.tied {
		unit := &peaks.tied[i]
		if groups>>unit.group&1 == 0 {
			continue
		}
		if next := min(unit.position, end); next > at {
			run = run.Join(peaks.costs(at, next))
			at = next
		}
		run = run.Join(unit.run)
	}
	run = run.Join(peaks.costs(at, end))
	return run.Peak(peaks.residents[device]) + peaks.Overhead[device]
}

// partKey is the set of units on a device, for a table with [costmodel.Table.Part].
type partKey struct {
	a, b   int
	groups uint64
	copies bool
}

// part joins the costs of a device's units if it has no others.
func (peaks *MapPeaks) part(a, b int, groups uint64, copies bool) timeline.Summary {
	key := partKey{a, b, groups, copies}
	if known, ok := peaks.parts[key]; ok {
		return known
	}
	owned := slices.Clone(peaks.Order[peaks.Start[a]:peaks.Start[b]])
	for i := range peaks.tied {
		if groups>>peaks.tied[i].group&1 != 0 {
			owned = append(owned, peaks.tied[i].unit)
		}
	}
	slices.Sort(owned)
	var run timeline.Summary
	units := peaks.In.Costs.Part(owned, copies)
	for i := range units {
		run = run.Join(timeline.Of(&units[i]))
	}
	peaks.parts[key] = run
	return run
}

// Floor is a lower bound of Peak for every device with at least these items and groups. With an
// arena, Peak may fall when a unit is added: a run that ends the model sends nothing.
func (peaks *MapPeaks) Floor(device, a, b int, groups uint64) int64 {
	if peaks.parts != nil && (a < b || groups != 0) {
		return peaks.part(a, b, groups, false).Peak(peaks.residents[device]) + peaks.Overhead[device]
	}
	if peaks.arena == nil || a >= b && groups == 0 {
		return peaks.Peak(device, a, b, groups)
	}
	return peaks.arena.Floor(peaks.rank(a, b, groups), peaks.residents[device].Workspace, true) + peaks.Overhead[device]
}

// rank returns the runs of units of a device with these items and groups.
func (peaks *MapPeaks) rank(a, b int, groups uint64) timeline.Rank {
	peaks.runs = peaks.runs[:0]
	at, end := peaks.Start[a], peaks.Start[b]
	for i := range peaks.tied {
		unit := &peaks.tied[i]
		if next := min(unit.position, end); next > at {
			peaks.run(peaks.Order[at], peaks.Order[next-1]+1)
			at = next
		}
		if groups>>unit.group&1 != 0 {
			peaks.run(unit.unit, unit.unit+1)
		}
	}
	if at < end {
		peaks.run(peaks.Order[at], peaks.Order[end-1]+1)
	}
	return timeline.Rank{Schedule: peaks.schedule, Chunks: peaks.runs}
}

// run adds a run of units, joined to the last one if it is adjacent.
func (peaks *MapPeaks) run(first, end int) {
	if last := len(peaks.runs) - 1; last >= 0 && peaks.runs[last].End == first {
		peaks.runs[last].End = end
		return
	}
	peaks.runs = append(peaks.runs, costmodel.Interval{First: first, End: end})
}

// Tied returns the number of units in groups.
func (peaks *MapPeaks) Tied() int { return len(peaks.tied) }

// CountNothingIdle removes the overhead of idle devices.
func (peaks *MapPeaks) CountNothingIdle() {
	for device := range peaks.Idle {
		if peaks.Idle[device] == peaks.Overhead[device] {
			peaks.Idle[device] = 0
		}
	}
	peaks.additive = false
}

// Chain returns the chain problem with these peaks.
func (peaks *MapPeaks) Chain() chain.Problem {
	out := peaks.Items.Chain()
	out.Peak, out.Additive = peaks.Peak, peaks.additive
	if (peaks.arena != nil || peaks.parts != nil) && peaks.In.Costs.Workload.Mode != costmodel.Load { // weights alone add up
		out.Floor = peaks.Floor
	}
	out.Class = peaks.classes(out.Budgets)
	return out
}

// classes numbers the devices by the figures that the chain solver uses.
func (peaks *MapPeaks) classes(budgets []int64) []int {
	type figures struct {
		resident               timeline.Resident
		overhead, idle, budget int64
	}
	known := make(map[figures]int)
	out := make([]int, len(budgets))
	for device := range out {
		seen := figures{peaks.residents[device], peaks.Overhead[device], peaks.Idle[device], budgets[device]}
		if _, ok := known[seen]; !ok {
			known[seen] = len(known)
		}
		out[device] = known[seen]
	}
	return out
}

// TooLarge names a group or an item that does not fit even on an empty device, and its least memory
// there. It names none if all fit, or if the context ends. Argument least returns a lower bound on
// the peak of a device with items [a, b), or a group.
func (items *Items) TooLarge(ctx context.Context, least func(device, a, b int, groups uint64) int64) (unit string, needs int64) {
	alone := func(a, b int, groups uint64) (need int64, fits bool) {
		need = math.MaxInt64
		for device := range items.In.Topology.Devices {
			peak := least(device, a, b, groups)
			if need = min(need, peak); peak <= items.In.Topology.Devices[device].Budget() {
				return need, true
			}
		}
		return need, false
	}
	for group, units := range items.Groups {
		if need, fits := alone(0, 0, 1<<group); !fits {
			return items.In.Graph.Units[units[len(units)-1]].Name, need
		}
	}
	for item := range items.Count() {
		if item%64 == 63 && ctx.Err() != nil {
			break
		}
		if need, fits := alone(item, item+1, 0); !fits {
			return items.In.Graph.Units[items.NameOf(item)].Name, need
		}
	}
	return "", 0
}
