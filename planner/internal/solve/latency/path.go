package latency

import (
	"math"
	"slices"
)

// A path's nodes run one after the other, whatever the assignment. A call that
// has two of its units has all between them, for what runs in a call is
// contiguous: so the calls take intervals of the path. One that has the path's
// units from a to b has every unit that lies between these in the graph; it
// has nothing that comes before the path's unit ahead of a, or after the one
// behind b, so that what its units read of the one it fetches, and what the
// other reads of them it sends. The least sum of all this over the intervals
// that fit a device (line.cuts) is time that no assignment saves.

// pathOf is the line of the heaviest path by the weights of nodes: only the
// units that it passes are on it, each with its nodes' time on the CPUs.
func (in *instance) pathOf(weight func(node int32) float64) *line {
	path := in.heaviest(weight)
	line := &line{instance: in}
	at := make(map[int32]int)
	for _, node := range path {
		unit := in.unitOf[node]
		if _, known := at[unit]; !known {
			at[unit] = line.length
			line.length++
			line.cpu = append(line.cpu, 0)
		}
		line.cpu[at[unit]] += in.cpuTime[node]
		if in.cpu < 0 {
			line.cpu[at[unit]] = math.Inf(1)
		}
	}
	line.first, line.last = make([]int32, len(in.nodes)), make([]int32, len(in.nodes))
	for unit := range in.nodes { // in the order of the graph
		line.first[unit] = -1
		if own, on := at[int32(unit)]; on {
			line.first[unit] = int32(own)
		}
		for _, above := range in.above[unit] {
			line.first[unit] = max(line.first[unit], line.first[above])
		}
	}
	for unit := range slices.Backward(in.nodes) {
		line.last[unit] = int32(line.length)
		if own, on := at[int32(unit)]; on {
			line.last[unit] = int32(own)
		}
		for _, below := range in.below[unit] {
			line.last[unit] = min(line.last[unit], line.last[below])
		}
	}
	return line
}

// heaviest is the path with the largest sum of weights.
func (in *instance) heaviest(weight func(node int32) float64) []int32 {
	best, from := make([]float64, len(in.unitOf)), make([]int32, len(in.unitOf))
	heaviest := int32(0)
	for _, node := range in.sorted() {
		from[node] = -1
		for _, before := range in.reads[node] {
			if from[node] < 0 || best[before] > best[node] {
				best[node], from[node] = best[before], before
			}
		}
		if best[node] += weight(node); best[node] > best[heaviest] {
			heaviest = node
		}
	}
	var path []int32
	for node := heaviest; node >= 0; node = from[node] {
		path = append(path, node)
	}
	slices.Reverse(path)
	return path
}

// sorted are the nodes, each behind those that it reads.
func (in *instance) sorted() []int32 {
	waits := make([]int32, len(in.reads))
	out := make([]int32, 0, len(in.reads))
	for node := range waits {
		if waits[node] = int32(len(in.reads[node])); waits[node] == 0 {
			out = append(out, int32(node))
		}
	}
	for at := 0; at < len(out); at++ {
		for _, reader := range in.readBy[out[at]] {
			waits[reader]--
			if waits[reader] == 0 {
				out = append(out, reader)
			}
		}
	}
	return out
}

// soonest is the least time that a node takes anywhere, as a part of its unit.
func (in *instance) soonest(node int32) float64 {
	least := math.Inf(1)
	if in.cpu >= 0 {
		least = in.cpuTime[node]
	}
	for _, kind := range in.unlike {
		if !in.stays[in.unitOf[node]] {
			least = min(least, in.problem.Nodes[node].Time[kind])
		}
	}
	return least
}
