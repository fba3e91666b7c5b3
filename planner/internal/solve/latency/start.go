package latency

import (
	"context"
	"math"
	"slices"
)

// fromIntervals is an assignment that keeps a line's intervals: each call takes
// what lies between its ends, on the device of its kind with the most room
// left; units that no call takes are placed one by one, in the order of the
// graph, each where the latency is then least: on the CPUs, in a call that a
// neighbour is in, or in one that is still empty.
func (search *search) fromIntervals(ctx context.Context, line *line, taken []interval) bool {
	in := search.instance
	search.clear()
	used := make([]int, len(in.kinds))
	for _, one := range taken {
		var units []int32
		size := 0.0
		for unit := range in.nodes {
			if int(line.first[unit]) >= one.from && int(line.last[unit]) <= one.to {
				units = append(units, int32(unit))
				size += in.size[unit]
			}
		}
		device := -1
		for other, kind := range in.kinds {
			if kind == one.kind && used[other] < in.calls && search.held[other]+size <= in.problem.Kinds[kind].Room() && (device < 0 || search.held[other] < search.held[device]) {
				device = other
			}
		}
		if device < 0 {
			continue
		}
		for _, unit := range units {
			search.put(unit, int32(device*in.calls+used[device]))
		}
		used[device]++
	}
	return search.complete(ctx)
}

// unplaced marks a unit that has no place yet; it counts as on the CPUs.
const unplaced = -2

// filled is an assignment that waits for nothing, the authors' greedy one: call
// by call takes what comes next in the order while it fits, the CPUs the rest.
func (search *search) filled(order []int32) bool {
	search.clear()
	slot := int32(0)
	for _, unit := range order {
		for int(slot) < search.slots && !search.stays[unit] && !search.may(unit, slot) {
			slot += int32(search.calls)
		}
		switch {
		case int(slot) < search.slots && search.may(unit, slot):
			search.put(unit, slot)
		case search.onCPU(unit):
			search.put(unit, OnCPU)
		default:
			return false
		}
	}
	return !math.IsInf(search.eval.latency(search.slot), 1)
}

// complete places what has no place, where the latency is least or, when ctx has
// ended, where it may be. False where a unit can be nowhere.
func (search *search) complete(ctx context.Context) bool {
	var left []int32
	for unit, slot := range search.slot {
		if slot == unplaced {
			left = append(left, int32(unit))
		}
	}
	for _, unit := range left {
		best, least := int32(unplaced), math.Inf(1)
		for _, slot := range search.near(unit) {
			if !search.may(unit, slot) {
				continue
			}
			if ctx.Err() != nil {
				best = slot
				break
			}
			search.put(unit, slot)
			if value := search.eval.latency(search.slot); value < least || best == unplaced {
				best, least = slot, value
			}
			search.put(unit, unplaced)
		}
		if best == unplaced {
			return false
		}
		search.put(unit, best)
	}
	return !math.IsInf(search.eval.latency(search.slot), 1)
}

// near are the calls that a unit may well be in: those of its neighbours, the
// first that is empty of each kind, and the CPUs.
func (search *search) near(unit int32) []int32 {
	var out []int32
	if search.onCPU(unit) {
		out = append(out, OnCPU)
	}
	for _, others := range [][]int32{search.above[unit], search.below[unit]} {
		for _, other := range others {
			if slot := search.slot[other]; slot >= 0 && !slices.Contains(out, slot) {
				out = append(out, slot)
			}
		}
	}
	var kinds []int
	for slot, count := range search.count {
		if len(kinds) == len(search.unlike) {
			break
		}
		if kind := search.kinds[slot/search.calls]; count == 0 && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
			out = append(out, int32(slot))
		}
	}
	return out
}

// orders are chains of all units that the graph allows: depth first, as the
// authors' greedy program goes, breadth first, and by how far they are along
// the heaviest path.
func (in *instance) orders() [][]int32 {
	var byDepth, byBreadth []int32
	waits := make([]int, len(in.nodes))
	for _, deep := range []bool{true, false} {
		var open, out []int32
		for unit := range waits {
			if waits[unit] = len(in.above[unit]); waits[unit] == 0 {
				open = append(open, int32(unit))
			}
		}
		for len(open) > 0 {
			at := 0
			if deep {
				at = len(open) - 1
			}
			unit := open[at]
			open = slices.Delete(open, at, at+1)
			out = append(out, unit)
			for _, below := range in.below[unit] {
				waits[below]--
				if waits[below] == 0 {
					open = append(open, below)
				}
			}
		}
		if deep {
			byDepth = out
		} else {
			byBreadth = out
		}
	}
	byPath := make([]int32, len(in.nodes))
	line := in.pathOf(in.soonest)
	for unit := range byPath {
		byPath[unit] = int32(unit)
	}
	slices.SortStableFunc(byPath, func(i, j int32) int { return int(line.last[i]) - int(line.last[j]) })
	return [][]int32{byDepth, byBreadth, byPath}
}

// chainOf is an order as a line, on which every unit is at its own position.
func (in *instance) chainOf(order []int32) *line {
	line := &line{instance: in, length: len(order), first: make([]int32, len(order)), last: make([]int32, len(order)), cpu: make([]float64, len(order))}
	for at, unit := range order {
		line.first[unit], line.last[unit] = int32(at), int32(at)
		for _, node := range in.nodes[unit] {
			line.cpu[at] += in.cpuTime[node]
		}
		if in.cpu < 0 {
			line.cpu[at] = math.Inf(1)
		}
	}
	return line
}
