package main

import (
	"math"
	"slices"
	"time"
)

// power makes a sum of powers of the loads stand for the largest, so that every
// device counts a little.
const power = 16

// energy is the norm of the loads, in parts of their mean, with what is over a
// capacity made dear.
func (state *anneal) energy(mean float64) float64 {
	total := 0.0
	for device, load := range state.load {
		ratio := load / mean
		ratio *= ratio
		ratio *= ratio
		ratio *= ratio
		total += ratio * ratio
		if over := state.held[device]/state.capacity - 1; over > 1e-12 {
			total += 10 + 1000*over
		}
	}
	return math.Pow(total, 1.0/power)
}

// run cools down until the time ends, several times over: from hot, or from
// warm where the start is good.
func (state *anneal) run(until time.Time, warm bool) {
	mean := 0.0
	for _, node := range state.problem.Nodes {
		mean += node.Time[0]
	}
	mean /= float64(len(state.load))
	state.keep()
	begin := time.Now()
	rounds := 2.0
	now, temperature := state.energy(mean), 0.0
	for step := 0; ; step++ {
		if step%256 == 0 {
			done := float64(time.Since(begin)) / float64(until.Sub(begin))
			if done >= 1 {
				return
			}
			round, part := math.Modf(done * rounds)
			hot := 0.1
			if warm || round > 0 {
				hot = 0.01
			}
			if temperature = hot * math.Pow(1e-4, part); part == 0 && state.best != nil {
				state.restore()
				now = state.energy(mean)
			}
		}
		node := state.random.IntN(len(state.at))
		from := state.at[node]
		to := state.target(node)
		if to == from {
			continue
		}
		state.move(node, to)
		next := state.energy(mean)
		if next > now && state.random.Float64() >= math.Exp((now-next)/temperature) {
			state.move(node, from)
			continue
		}
		now = next
		state.keep()
	}
}

// target is a device that a node may go to.
func (state *anneal) target(node int) int {
	low, high := 0, len(state.load)-1
	if state.contiguous {
		for _, from := range state.reads[node] {
			low = max(low, state.at[from])
		}
		for _, to := range state.readBy[node] {
			high = min(high, state.at[to])
		}
	}
	return low + state.random.IntN(high-low+1)
}

// move takes a node to a device: its own output is paid for anew, and that of
// all it reads.
func (state *anneal) move(node, to int) {
	own := &state.problem.Nodes[node]
	from := state.at[node]
	state.pay(node, -1)
	for _, read := range state.reads[node] {
		state.pay(read, -1)
		state.readers[read][from]--
		state.readers[read][to]++
		state.pay(read, 1)
	}
	state.load[from] -= own.Time[0]
	state.load[to] += own.Time[0]
	state.held[from] -= own.Size
	state.held[to] += own.Size
	state.at[node] = to
	state.pay(node, 1)
}

// keep remembers the places where they are the best within the capacities.
func (state *anneal) keep() {
	if slices.Max(state.load) < state.least*(1-1e-12) && slices.Max(state.held) <= state.capacity {
		state.best, state.least = append(state.best[:0], state.at...), slices.Max(state.load)
	}
}

// restore goes back to the best.
func (state *anneal) restore() {
	for node, device := range state.best {
		if state.at[node] != device {
			state.move(node, device)
		}
	}
}
