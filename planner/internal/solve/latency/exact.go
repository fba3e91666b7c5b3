package latency

import (
	"context"
	"math"
)

// mostExact bounds the units of which every assignment is tried.
const mostExact = 16

// exact tries the assignments of a small graph, unit by unit in its order, but
// for those of which the first units alone, with all others where they are
// fastest and nothing sent to them, take as long as the best known.
type exact struct {
	*search

	ctx    context.Context //nolint:containedctx // of the one call
	solver *solver
	order  []int32   // of nodes
	tail   []float64 // of nodes: the longest path from it on, each node where it is fastest
	end    []float64 // of vertices
	paid   []int32
	steps  int
}

// exact tries every assignment where they are few; it proves the best.
func (solver *solver) exact(ctx context.Context) {
	in := solver.whole
	if in == nil || len(solver.all) > 1 || len(in.nodes) > mostExact || in.calls > 1 && len(in.nodes) < len(in.unitOf) {
		return
	}
	state := &exact{
		search: newSearch(in, 0), ctx: ctx, solver: solver, order: in.sorted(),
		tail: make([]float64, len(in.unitOf)), end: make([]float64, in.slots+len(in.unitOf)), paid: make([]int32, in.slots),
	}
	for i := len(state.order) - 1; i >= 0; i-- {
		node := state.order[i]
		for _, reader := range in.readBy[node] {
			state.tail[node] = max(state.tail[node], state.tail[reader])
		}
		state.tail[node] += in.soonest(node)
	}
	if state.try(0) {
		solver.raise(solver.value, "every assignment that is not longer by its first units was tried")
	}
}

// try places the units from one on; false where the time ended.
func (state *exact) try(unit int32) bool {
	state.steps++
	if state.steps%64 == 0 && state.ctx.Err() != nil {
		return false
	}
	if int(unit) == len(state.slot) {
		if value := state.eval.latency(state.slot); value < state.solver.value {
			state.solver.take(state.calling(state.slot), value, "every assignment")
		}
		return true
	}
	empty := make(map[int]bool) // kinds
	for slot := int32(OnCPU); int(slot) < state.slots; slot++ {
		if slot >= 0 && state.held[int(slot)/state.calls] == 0 && state.unused(slot) {
			kind := state.kinds[int(slot)/state.calls]
			if int(slot)%state.calls == 0 && empty[kind] {
				slot += int32(state.calls) - 1 // as the one before
				continue
			}
			empty[kind] = true
		}
		if !state.may(unit, slot) {
			continue
		}
		state.put(unit, slot)
		done := state.least() >= state.solver.value || state.try(unit+1)
		state.put(unit, unplaced)
		if !done {
			return false
		}
	}
	return true
}

// unused says that nothing is in any call of a call's accelerator.
func (state *exact) unused(slot int32) bool {
	first := int(slot) / state.calls * state.calls
	for _, count := range state.count[first : first+state.calls] {
		if count > 0 {
			return false
		}
	}
	return true
}

// least is what no assignment that goes on from this one is below; +Inf where
// calls wait for each other. Times are raised until none changes.
func (state *exact) least() float64 {
	clear(state.end)
	load := state.loads()
	ready := make([]float64, state.slots)
	for round := 0; ; round++ {
		if round > state.slots+1 {
			return math.Inf(1)
		}
		changed := false
		for call := range ready {
			if call%state.calls > 0 {
				ready[call] = max(ready[call], state.end[call-1])
			}
			if end := ready[call] + load[call]; end > state.end[call] {
				state.end[call], changed = end, true
			}
		}
		for _, node := range state.order {
			changed = state.wait(node, ready) || changed
		}
		if !changed {
			break
		}
	}
	least := 0.0
	for _, node := range state.order {
		if state.slot[state.unitOf[node]] == unplaced {
			continue
		}
		end := state.end[state.vertex(node)]
		least = max(least, end)
		for _, reader := range state.readBy[node] {
			if state.slot[state.unitOf[reader]] == unplaced {
				least = max(least, end+state.tail[reader])
			}
		}
	}
	return least
}

// vertex is what a placed node runs in.
func (state *exact) vertex(node int32) int {
	if slot := state.slot[state.unitOf[node]]; slot >= 0 {
		return int(slot)
	}
	return state.slots + int(node)
}

// loads are the times of calls with what is placed so far.
func (state *exact) loads() []float64 {
	load := make([]float64, state.slots)
	for unit, slot := range state.slot {
		if slot >= 0 {
			load[slot] += state.time[state.kinds[int(slot)/state.calls]][unit]
		}
	}
	for call := range state.paid {
		state.paid[call] = -1
	}
	for node, readers := range state.readBy {
		own := state.slot[state.unitOf[node]]
		if own == unplaced {
			continue
		}
		for _, reader := range readers {
			slot := state.slot[state.unitOf[reader]]
			if slot == unplaced || slot == own {
				continue
			}
			for _, call := range []int32{own, slot} {
				if call >= 0 && state.paid[call] != int32(node) {
					state.paid[call] = int32(node)
					load[call] += state.transfer[node]
				}
			}
		}
	}
	return load
}

// wait raises when a node is done, or when its call is ready.
func (state *exact) wait(node int32, ready []float64) bool {
	slot := state.slot[state.unitOf[node]]
	if slot == unplaced {
		return false
	}
	start := 0.0
	for _, before := range state.reads[node] {
		if vertex := state.vertex(before); vertex != int(slot) {
			start = max(start, state.end[vertex])
		}
	}
	if slot >= 0 {
		if start <= ready[slot] {
			return false
		}
		ready[slot] = start
		return true
	}
	vertex := state.slots + int(node)
	if end := start + state.cpuTime[node]; end > state.end[vertex] {
		state.end[vertex] = end
		return true
	}
	return false
}
