package netlist

import (
	"cmp"
	"slices"
)

// corridor is what lies beside one answer: of the states of a step it keeps those from
// which the rest of the answer is the cheapest. The cheapest of them, with that rest, costs
// no more than the one a step before: so that a set which costs no more than the answer is
// within the narrowest corridor.
type corridor struct {
	taken func(item int32) bool
	most  int
	// rest are the members of each wire that are still to come, left out and taken.
	rest [][2]int
	open []int // wires
	// costs of a state are, for each open wire by the wire's state, what the rest of the
	// answer adds.
	costs [][4]float64
}

func (level *layer) newCorridor(order []int32, taken func(item int32) bool, most int) *corridor {
	beside := &corridor{taken: taken, most: most, rest: make([][2]int, len(level.Wires))}
	for _, item := range order {
		for _, wire := range level.WiresOf[item] {
			beside.rest[wire][sideOf(taken(item))]++
		}
	}
	return beside
}

func sideOf(taken bool) int {
	if taken {
		return 1
	}
	return 0
}

// pass goes on by an item.
func (beside *corridor) pass(level *layer, step int, item int32) {
	if beside == nil {
		return
	}
	for _, wire := range level.WiresOf[item] {
		beside.rest[wire][sideOf(beside.taken(item))]--
		if level.used[wire] && level.first[wire] == step {
			beside.open = append(beside.open, int(wire))
		}
	}
	beside.open = slices.DeleteFunc(beside.open, func(wire int) bool { return level.last[wire] == step })
}

// narrow drops states of a step, and the arcs that lead there.
func (beside *corridor) narrow(level *layer, arcs [][2]Arc) {
	if beside == nil || len(level.states) <= beside.most {
		return
	}
	beside.price(level)
	type ranked struct {
		cost  float64
		state int32
	}
	ranks := make([]ranked, len(level.states))
	for state, key := range level.states {
		cost := level.least[state]
		for i, wire := range beside.open {
			cost += beside.costs[i][key[level.slot[wire]]]
		}
		ranks[state] = ranked{cost, int32(state)}
	}
	slices.SortFunc(ranks, func(a, b ranked) int { return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.state, b.state)) })
	number := slices.Repeat([]int32{Nowhere}, len(ranks))
	states, least := make([]string, beside.most), make([]float64, beside.most)
	for i, rank := range ranks[:beside.most] {
		number[rank.state] = int32(i)
		states[i], least[i] = level.states[rank.state], level.least[rank.state]
	}
	for stage := range arcs {
		for choice := range arcs[stage] {
			if arc := &arcs[stage][choice]; arc.To != Nowhere {
				arc.To = number[arc.To]
			}
		}
	}
	level.states, level.least = states, least
}

// price works out what the rest of the answer adds to a state, for each open wire.
func (beside *corridor) price(level *layer) {
	beside.costs = beside.costs[:0]
	for _, wire := range beside.open {
		var costs [4]float64
		for state := range costs {
			now := byte(state)
			for choice, count := range beside.rest[wire] {
				if count > 0 {
					var arc Arc
					arc.enter(&now, choice, level.Outside[wire], level.Wires[wire].Cost)
					costs[state] += arc.In + arc.Out
				}
			}
		}
		beside.costs = append(beside.costs, costs)
	}
}
