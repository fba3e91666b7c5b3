package stages

import "math"

// knapsack is the choice of options for member nodes. The relaxation takes swaps along the hulls in
// the order of time per byte and breaks the last one (Sinha and Zoltners, "The multiple-choice
// knapsack problem", 1979). Branch and bound, or lists of states, close the remaining gap.
type knapsack struct {
	*view
	member func(node int) bool

	// Fields of the exact search. items are the nodes with a swap, in the order of their first
	// swap. swaps name a node by its index in items.
	items  []int
	swaps  []swap
	taken  []int // option of each item
	best   []int
	value  float64
	budget int // branches left; 0: searched
	states int // most states of the lists; 0: mostStates
	ended  bool
}

// searched is the most branches of one exact search. Beyond it, the relaxation remains the bound.
const searched = 3_000

// Rough returns bounds on the result of Relax for any members that can save need bytes. They use
// the best and the worst ratio of all swaps, with the longest swap broken.
func (view *view) Rough(need float64) (lower, upper float64) {
	if need <= 0 || len(view.swaps) == 0 {
		return 0, 0
	}
	best, worst := view.swaps[0], view.swaps[len(view.swaps)-1]
	return need * (best.time / best.saves), need*(worst.time/worst.saves) + view.longest
}

// Relax returns the relaxation's bound on the time to save need bytes, and the time of the rounded
// solution, which takes the broken swap whole. +Inf: no choice saves enough.
func (sack *knapsack) Relax(need float64) (lower, upper float64) {
	if need <= 0 {
		return 0, 0
	}
	extra := 0.0
	for i := range sack.view.swaps {
		exchange := &sack.view.swaps[i]
		if !sack.member(exchange.node) {
			continue
		}
		if exchange.saves >= need {
			return extra + exchange.time*(need/exchange.saves), extra + exchange.time
		}
		need -= exchange.saves
		extra += exchange.time
	}
	return math.Inf(1), math.Inf(1)
}

// Solve returns a lower and an upper bound on the least time to save need bytes. Result option has
// the nodes' options for the upper bound, 0 if a node is missing. +Inf: no choice saves enough.
func (sack *knapsack) Solve(need float64) (lower, upper float64, option map[int]int) {
	option = make(map[int]int)
	if need <= 0 {
		return 0, 0, option
	}
	sack.items, sack.swaps = nil, nil
	place := make(map[int]int)
	for _, exchange := range sack.view.swaps {
		if !sack.member(exchange.node) {
			continue
		}
		item, known := place[exchange.node]
		if !known {
			item = len(sack.items)
			place[exchange.node] = item
			sack.items = append(sack.items, exchange.node)
		}
		sack.swaps = append(sack.swaps, swap{item, exchange.time, exchange.saves})
	}
	lower, upper = sack.Relax(need)
	if math.IsInf(lower, 1) {
		return lower, upper, nil
	}
	sack.taken, sack.best = make([]int, len(sack.items)), sack.rounded(need)
	if sack.value = upper; sack.budget == 0 {
		sack.budget = searched
	}
	sack.branch(0, need, 0)
	if sack.ended = sack.budget > 0 || sack.lists(need); sack.ended { // false: some branch was not searched
		lower = sack.value
	}
	for i, node := range sack.items {
		option[node] = sack.best[i]
	}
	return lower, sack.value, option
}

// rounded returns the options of Relax's upper bound.
func (sack *knapsack) rounded(need float64) []int {
	option := make([]int, len(sack.items))
	for _, exchange := range sack.swaps {
		if need <= 0 {
			break
		}
		option[exchange.node] = sack.Nodes[sack.items[exchange.node]].steepest(option[exchange.node])
		need -= exchange.saves
	}
	return option
}

// branch decides item i and the later ones, with need bytes left to save.
func (sack *knapsack) branch(i int, need, extra float64) {
	if need <= 0 {
		if extra < sack.value {
			sack.value = extra
			clear(sack.taken[i:])
			copy(sack.best, sack.taken)
		}
		return
	}
	sack.budget--
	if sack.budget <= 0 || i == len(sack.items) || extra+sack.rest(i, need) >= sack.value {
		return
	}
	opts := &sack.Nodes[sack.items[i]]
	// Try the slowest first: early swaps save the most memory for their time.
	for choice := len(opts.Choice) - 1; choice >= 0; choice-- {
		sack.taken[i] = choice
		sack.branch(i+1, need-(opts.Memory[0]-opts.Memory[choice]), extra+opts.Time[choice]-opts.Time[0])
	}
}

// rest returns the relaxation over the items from i on.
func (sack *knapsack) rest(i int, need float64) float64 {
	extra := 0.0
	for j := range sack.swaps {
		exchange := &sack.swaps[j]
		if exchange.node < i {
			continue
		}
		if exchange.saves >= need {
			return extra + exchange.time*(need/exchange.saves)
		}
		need -= exchange.saves
		extra += exchange.time
	}
	return math.Inf(1)
}
