package stages

import "math"

// knapsack chooses one option per node so that a number of bytes is saved at
// the least time over the fastest choices: a multiple-choice knapsack. The
// relaxation takes swaps along the hulls in the order of time a byte and
// breaks the last one (Sinha and Zoltners, "The multiple-choice knapsack
// problem", 1979); branch and bound closes what it leaves open.
type knapsack struct {
	*view
	member func(node int) bool

	// The exact search: the nodes that have a swap, in the order of their
	// first, a node's place among them, and their swaps.
	items  []int
	place  map[int]int
	swaps  []swap
	taken  []int // option of each item
	best   []int
	value  float64
	budget int // branches yet, set to searched where it is 0
}

// searched bounds the branches of one exact search. What it leaves open keeps
// the relaxation as its bound.
const searched = 3_000

// relax returns the bound of the relaxation on the time that saving need bytes
// takes, and the time of its rounded form: the broken swap taken whole.
// +Inf: that much cannot be saved.
func (k *knapsack) relax(need float64) (lower, upper float64) {
	if need <= 0 {
		return 0, 0
	}
	extra := 0.0
	for i := range k.view.swaps {
		s := &k.view.swaps[i]
		if !k.member(s.node) {
			continue
		}
		if s.saves >= need {
			return extra + s.time*(need/s.saves), extra + s.time
		}
		need -= s.saves
		extra += s.time
	}
	return math.Inf(1), math.Inf(1)
}

// solve returns the least time that saves need bytes, from below and from
// above, and the options that take the upper one. Above
// +Inf: that much cannot be saved.
func (k *knapsack) solve(need float64) (lower, upper float64, option map[int]int) {
	option = make(map[int]int)
	if need <= 0 {
		return 0, 0, option
	}
	k.items, k.place, k.swaps = nil, make(map[int]int), nil
	for _, s := range k.view.swaps {
		if !k.member(s.node) {
			continue
		}
		k.swaps = append(k.swaps, s)
		if _, known := k.place[s.node]; !known {
			k.place[s.node] = len(k.items)
			k.items = append(k.items, s.node)
		}
	}
	lower, upper = k.relax(need)
	if math.IsInf(lower, 1) {
		return lower, upper, nil
	}
	k.taken, k.best = make([]int, len(k.items)), k.rounded(need)
	if k.value = upper; k.budget == 0 {
		k.budget = searched
	}
	k.branch(0, need, 0)
	if k.budget > 0 { // else some branch was not looked at
		lower = k.value
	}
	for i, v := range k.items {
		option[v] = k.best[i]
	}
	return lower, k.value, option
}

// rounded are the options of relax's upper answer.
func (k *knapsack) rounded(need float64) []int {
	option := make([]int, len(k.items))
	for _, s := range k.swaps {
		if need <= 0 {
			break
		}
		i := k.place[s.node]
		option[i] = k.nodes[s.node].steepest(option[i])
		need -= s.saves
	}
	return option
}

// branch decides item i and those after it, need bytes still to save.
func (k *knapsack) branch(i int, need, extra float64) {
	if need <= 0 {
		if extra < k.value {
			k.value = extra
			clear(k.taken[i:])
			copy(k.best, k.taken)
		}
		return
	}
	k.budget--
	if k.budget <= 0 || i == len(k.items) || extra+k.rest(i, need) >= k.value {
		return
	}
	o := &k.nodes[k.items[i]]
	// Swaps that come early are worth taking: the slowest first.
	for c := len(o.choice) - 1; c >= 0; c-- {
		k.taken[i] = c
		k.branch(i+1, need-(o.memory[0]-o.memory[c]), extra+o.time[c]-o.time[0])
	}
}

// rest is the relaxation over the items from i on.
func (k *knapsack) rest(i int, need float64) float64 {
	extra := 0.0
	for j := range k.swaps {
		s := &k.swaps[j]
		if k.place[s.node] < i {
			continue
		}
		if s.saves >= need {
			return extra + s.time*(need/s.saves)
		}
		need -= s.saves
		extra += s.time
	}
	return math.Inf(1)
}
