package stages

import "github.com/devmap-dev/devmap/planner/internal/solve/multichoice"

// cross works out what a node adds to the transfers of a stage that ends where
// the upper set does. It is the same in every such stage: what the node reads
// is outside when it joins, and what reads it is inside where the upper set
// holds it.
func (attempt *probe) cross(upper int) {
	if !attempt.network.transfers {
		return
	}
	for node := range attempt.delta {
		d := 0.0
		for _, edge := range attempt.network.in[node] {
			d += edge.receive
		}
		for _, edge := range attempt.network.out[node] {
			if attempt.sets.Has(upper, edge.node) {
				d -= edge.receive
			} else {
				d += edge.send
			}
		}
		attempt.delta[node] = d
	}
}

// sent is what a node adds to what a set sends out when it joins: nothing that
// the set holds reads it yet, and it reads nothing from outside.
func (network *web) sent(node int) float64 {
	d := 0.0
	for _, edge := range network.out[node] {
		d += edge.send
	}
	for _, edge := range network.in[node] {
		d -= edge.send
	}
	return d
}

// allowed judges the stage between two sets, memory and time together, and
// notes when it would be.
func (attempt *probe) allowed(upper, lower int, transfers float64) bool {
	if !attempt.room(upper, lower) {
		return false
	}
	time := attempt.fastest[upper] - attempt.fastest[lower] + transfers
	limit := attempt.limit + rounding*(attempt.fastest[0]+time)
	if time > limit {
		attempt.next = min(attempt.next, time)
		return false
	}
	need := attempt.fast[upper] - attempt.fast[lower] - attempt.capacity*(1+rounding)
	if !(need > 0) {
		return true
	}
	sack := multichoice.Knapsack{View: attempt.view, Member: func(node int) bool { return attempt.sets.Has(upper, node) && !attempt.sets.Has(lower, node) }}
	low, high := sack.Relax(need)
	if time+low <= limit && time+high > limit {
		low, high = attempt.exact(&sack, upper, lower, need)
	}
	if time+low > limit {
		attempt.next = min(attempt.next, time+low)
		return false
	}
	if time+high > limit {
		attempt.open = true
	}
	return true
}

// exact asks the whole knapsack, once.
func (attempt *probe) exact(sack *multichoice.Knapsack, upper, lower int, need float64) (low, high float64) {
	key := stageKey{int32(upper), int32(lower), int32(attempt.stage)}
	known, ok := attempt.solved[key]
	if !ok {
		known.lower, known.upper, _ = sack.Solve(need)
		attempt.solved[key] = known
	}
	return known.lower, known.upper
}

// pipeline reads the answer of a probe that reached the empty set, with the
// best choices of every stage.
func (attempt *probe) pipeline() (stage, choice []int) {
	stage, choice = make([]int, len(attempt.network.Order)), make([]int, len(attempt.network.Order))
	for at, s := attempt.sets.Empty, 0; at != 0; s++ {
		upper, y := int(attempt.after[at]), int(attempt.level[at])
		nodes := attempt.sets.Nodes(upper, at)
		seen := attempt.search.view(y)
		need := -attempt.capacity * (1 + rounding)
		for _, node := range nodes {
			_, memory := seen.Nodes[node].Fastest()
			need += memory
		}
		inside := make(map[int]bool, len(nodes))
		for _, node := range nodes {
			inside[node] = true
		}
		sack := multichoice.Knapsack{View: seen, Member: func(node int) bool { return inside[node] }}
		_, _, option := sack.Solve(need)
		for _, node := range nodes {
			stage[node], choice[node] = s, seen.Nodes[node].Choice[option[node]]
		}
		at = upper
	}
	return stage, choice
}
