package stages

import (
	"cmp"
	"slices"
)

// view is the nodes as the stage sees them that has so many micro-batches in flight.
type view struct {
	stage int
	nodes []options
	// swaps are the steps of all nodes along the lower hull of (memory, time),
	// the least time a byte first; those of one node stand in their order.
	swaps []swap
}

// options are a node's choices that are not dominated: time rises, memory
// falls.
type options struct {
	choice       []int
	time, memory []float64
}

// swap takes a node from one choice to a slower one that needs less memory.
type swap struct {
	node        int
	time, saves float64
}

func newView(problem *Problem, stage int) *view {
	seen := &view{stage: stage, nodes: make([]options, len(problem.Nodes))}
	for node := range problem.Nodes {
		opts := newOptions(problem.Nodes[node].Choices, stage)
		seen.nodes[node] = opts
		for i := 0; i < len(opts.choice)-1; {
			to := opts.steepest(i)
			seen.swaps = append(seen.swaps, swap{node, opts.time[to] - opts.time[i], opts.memory[i] - opts.memory[to]})
			i = to
		}
	}
	slices.SortStableFunc(seen.swaps, func(a, b swap) int { return cmp.Compare(a.time/a.saves, b.time/b.saves) })
	return seen
}

func newOptions(choices []Choice, stage int) options {
	memory := func(choice int) float64 { return float64(stage)*choices[choice].InFlight + choices[choice].Fixed }
	byTime := make([]int, len(choices))
	for choice := range byTime {
		byTime[choice] = choice
	}
	slices.SortStableFunc(byTime, func(a, b int) int {
		return cmp.Or(cmp.Compare(choices[a].Time, choices[b].Time), cmp.Compare(memory(a), memory(b)))
	})
	var opts options
	for _, choice := range byTime {
		if count := len(opts.memory); count == 0 || memory(choice) < opts.memory[count-1] {
			opts.choice = append(opts.choice, choice)
			opts.time = append(opts.time, choices[choice].Time)
			opts.memory = append(opts.memory, memory(choice))
		}
	}
	return opts
}

// steepest is the next corner of the lower hull after i.
func (opts *options) steepest(i int) int {
	best := i + 1
	for j := i + 2; j < len(opts.choice); j++ {
		if (opts.time[j]-opts.time[i])*(opts.memory[i]-opts.memory[best]) <= (opts.time[best]-opts.time[i])*(opts.memory[i]-opts.memory[j]) {
			best = j
		}
	}
	return best
}

// fastest and least are the ends of the trade.
func (opts *options) fastest() (time, memory float64) { return opts.time[0], opts.memory[0] }
func (opts *options) least() float64                  { return opts.memory[len(opts.memory)-1] }
