package stages

import (
	"cmp"
	"slices"
)

// mostStates limits the states of one search by lists, about 10 MB.
const mostStates = 200_000

// state is a choice of options of the first items: the bytes that they save, up to those needed,
// and their time. from is its state in the previous list.
type state struct {
	saved, time  float64
	from, option int32
}

// lists is the exact choice if branching took too long. It adds items one by one to all states that
// are nondominated in bytes and time (Nemhauser and Ullmann, "Discrete dynamic programming and
// capital allocation", 1969). It drops states that the best ratio of the items left cannot bring
// below the best choice. Equal layers save equal bytes, so they give few states. It returns false
// if there are too many states.
func (sack *knapsack) lists(need float64) bool {
	ratio, left := make([]float64, len(sack.items)+1), make([]float64, len(sack.items)+1)
	for i, node := range slices.Backward(sack.items) {
		opts := &sack.Nodes[node]
		first := opts.steepest(0)
		ratio[i] = (opts.Time[first] - opts.Time[0]) / (opts.Memory[0] - opts.Memory[first])
		left[i] = left[i+1] + opts.Memory[0] - opts.Least()
	}
	all := [][]state{{{}}}
	count := 0
	for i, node := range sack.items {
		opts := &sack.Nodes[node]
		var next []state
		for from, at := range all[i] {
			for option := range opts.Choice {
				to := state{min(need, at.saved+opts.Memory[0]-opts.Memory[option]), at.time + opts.Time[option] - opts.Time[0], int32(from), int32(option)}
				short := need - to.saved
				if short > left[i+1] || to.time >= sack.value || short > 0 && to.time+short*ratio[i+1] >= sack.value {
					continue
				}
				next = append(next, to)
			}
		}
		slices.SortFunc(next, func(a, b state) int { return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(b.saved, a.saved)) })
		frontier, most := next[:0], -1.
		for _, to := range next {
			if to.saved > most {
				frontier, most = append(frontier, to), to.saved
			}
		}
		if count += len(frontier); count > cmp.Or(sack.states, mostStates) {
			return false
		}
		all = append(all, frontier)
	}
	sack.read(all, need)
	return true
}

// read takes the fastest choice that saves enough, if it is better than the best so far.
func (sack *knapsack) read(all [][]state, need float64) {
	last := all[len(all)-1]
	at := slices.IndexFunc(last, func(end state) bool { return end.saved >= need })
	if at < 0 {
		return
	}
	sack.value = last[at].time
	for i := len(sack.items) - 1; i >= 0; i-- {
		step := all[i+1][at]
		sack.best[i], at = int(step.option), int(step.from)
	}
}
