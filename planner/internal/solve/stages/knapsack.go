package stages

import "math"

// knapsack is the choice among the nodes that are members. The
// relaxation takes swaps along the hulls in the order of time a byte and
// breaks the last one (Sinha and Zoltners, "The multiple-choice knapsack
// problem", 1979); branch and bound closes what it leaves open, or lists of
// states.
type knapsack struct {
	*view
	member func(node int) bool

	// The exact search: the nodes that have a swap, in the order of their
	// first, and their swaps, which name a node by its place among them.
	items  []int
	swaps  []swap
	taken  []int // option of each item
	best   []int
	value  float64
	budget int // branches yet, set to searched where it is 0
	states int // of the lists at most, mostStates where it is 0
	ended  bool
}

// searched bounds the branches of one exact search. What it leaves open keeps
// the relaxation as its bound.
const searched = 3_000

// Rough returns bounds on what Relax returns of any members that can save so
// much: by the best and the worst ratio of all swaps, the longest one broken.
func (view *view) Rough(need float64) (lower, upper float64) {
	if need <= 0 || len(view.swaps) == 0 {
		return 0, 0
	}
	best, worst := view.swaps[0], view.swaps[len(view.swaps)-1]
	return need * (best.time / best.saves), need*(worst.time/worst.saves) + view.longest
}

// Relax returns the bound of the relaxation on the time that saving need bytes
// takes, and the time of its rounded form: the broken swap taken whole.
// +Inf: that much cannot be saved.
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

// Solve returns the least time that saves need bytes, from below and from
// above, and the options that take the upper one, 0 where a node is not named.
// +Inf: that much cannot be saved.
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
	if sack.ended = sack.budget > 0 || sack.lists(need); sack.ended { // else some branch was not looked at
		lower = sack.value
	}
	for i, node := range sack.items {
		option[node] = sack.best[i]
	}
	return lower, sack.value, option
}

// rounded are the options of Relax's upper answer.
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

// branch decides item i and those after it, need bytes still to save.
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

// rest is the relaxation over the items from i on.
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
