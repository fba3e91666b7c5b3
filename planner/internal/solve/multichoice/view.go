// Package multichoice chooses one option per node so that a number of bytes is
// saved at the least time over the fastest options: the multiple-choice
// knapsack, with its relaxation and an exact search.
package multichoice

import (
	"cmp"
	"slices"
)

// Option is one way to run a node.
type Option struct{ Time, Memory float64 }

// View is what nodes may be, once memory is a number.
type View struct {
	Nodes []Options
	// swaps are the steps of all nodes along the lower hull of (memory, time),
	// the least time a byte first; those of one node stand in their order.
	swaps []swap
	// longest is the time of the longest.
	longest float64
}

// Options are a node's options that are not dominated: time rises, memory
// falls. Choice is an option's index among those given.
type Options struct {
	Choice       []int
	Time, Memory []float64
}

// swap takes a node from one option to a slower one that needs less memory.
type swap struct {
	node        int
	time, saves float64
}

// NewView sorts the options that each node has, at least one.
func NewView(nodes int, of func(node int) []Option) *View {
	seen := &View{Nodes: make([]Options, nodes)}
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

func newOptions(given []Option) Options {
	byTime := make([]int, len(given))
	for choice := range byTime {
		byTime[choice] = choice
	}
	slices.SortStableFunc(byTime, func(a, b int) int {
		return cmp.Or(cmp.Compare(given[a].Time, given[b].Time), cmp.Compare(given[a].Memory, given[b].Memory))
	})
	var opts Options
	for _, choice := range byTime {
		if count := len(opts.Memory); count == 0 || given[choice].Memory < opts.Memory[count-1] {
			opts.Choice = append(opts.Choice, choice)
			opts.Time = append(opts.Time, given[choice].Time)
			opts.Memory = append(opts.Memory, given[choice].Memory)
		}
	}
	return opts
}

// steepest is the next corner of the lower hull after i.
func (opts *Options) steepest(i int) int {
	best := i + 1
	for j := i + 2; j < len(opts.Choice); j++ {
		if (opts.Time[j]-opts.Time[i])*(opts.Memory[i]-opts.Memory[best]) <= (opts.Time[best]-opts.Time[i])*(opts.Memory[i]-opts.Memory[j]) {
			best = j
		}
	}
	return best
}

// Fastest is the option of the least time.
func (opts *Options) Fastest() (time, memory float64) { return opts.Time[0], opts.Memory[0] }

// Least is the least memory of any option.
func (opts *Options) Least() float64 { return opts.Memory[len(opts.Memory)-1] }
