package stages

import (
	"cmp"
	"slices"
)

// option is one way to run a node.
type option struct{ Time, Memory float64 }

// view lists the nodes' options once their memory is known.
type view struct {
	Nodes []options
	// swaps are the steps of all nodes along the lower hull of (memory, time), the least time per
	// byte first. Swaps of one node keep their order.
	swaps []swap
	// longest is the time of the longest swap.
	longest float64
	// fastest is the memory of the fastest options, by set.
	fastest []float64
}

// options are a node's nondominated options: time rises, memory falls. Choice is an option's index
// in the full list.
type options struct {
	Choice       []int
	Time, Memory []float64
}

// swap changes a node's option to a slower one with less memory.
type swap struct {
	node        int
	time, saves float64
}

// newView sorts the options of each node, which has at least one.
func newView(nodes int, of func(node int) []option) *view {
	seen := &view{Nodes: make([]options, nodes)}
	for node := range nodes {
		opts := newOptions(of(node))
		seen.Nodes[node] = opts
		for i := 0; i < len(opts.Choice)-1; {
			to := opts.steepest(i)
			seen.swaps = append(seen.swaps, swap{node, opts.Time[to] - opts.Time[i], opts.Memory[i] - opts.Memory[to]})
			i = to
		}
	}
	for _, exchange := range seen.swaps {
		seen.longest = max(seen.longest, exchange.time)
	}
	slices.SortStableFunc(seen.swaps, func(a, b swap) int { return cmp.Compare(a.time/a.saves, b.time/b.saves) })
	return seen
}

func newOptions(given []option) options {
	byTime := make([]int, len(given))
	for choice := range byTime {
		byTime[choice] = choice
	}
	slices.SortStableFunc(byTime, func(a, b int) int {
		return cmp.Or(cmp.Compare(given[a].Time, given[b].Time), cmp.Compare(given[a].Memory, given[b].Memory))
	})
	var opts options
	for _, choice := range byTime {
		if count := len(opts.Memory); count == 0 || given[choice].Memory < opts.Memory[count-1] {
			opts.Choice = append(opts.Choice, choice)
			opts.Time = append(opts.Time, given[choice].Time)
			opts.Memory = append(opts.Memory, given[choice].Memory)
		}
	}
	return opts
}

// steepest returns the next corner of the lower hull after i.
func (opts *options) steepest(i int) int {
	best := i + 1
	for j := i + 2; j < len(opts.Choice); j++ {
		if (opts.Time[j]-opts.Time[i])*(opts.Memory[i]-opts.Memory[best]) <= (opts.Time[best]-opts.Time[i])*(opts.Memory[i]-opts.Memory[j]) {
			best = j
		}
	}
	return best
}

// Fastest returns the fastest option.
func (opts *options) Fastest() (time, memory float64) { return opts.Time[0], opts.Memory[0] }

// Least returns the least memory of any option.
func (opts *options) Least() float64 { return opts.Memory[len(opts.Memory)-1] }
