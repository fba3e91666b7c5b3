package stages

import (
	"cmp"
	"slices"
)

// view is the nodes as the stage sees them that has y micro-batches in flight.
type view struct {
	y     int
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

func newView(p *Problem, y int) *view {
	w := &view{y: y, nodes: make([]options, len(p.Nodes))}
	for v := range p.Nodes {
		o := newOptions(p.Nodes[v].Choices, y)
		w.nodes[v] = o
		for i := 0; i < len(o.choice)-1; {
			to := o.steepest(i)
			w.swaps = append(w.swaps, swap{v, o.time[to] - o.time[i], o.memory[i] - o.memory[to]})
			i = to
		}
	}
	slices.SortStableFunc(w.swaps, func(a, b swap) int { return cmp.Compare(a.time/a.saves, b.time/b.saves) })
	return w
}

func newOptions(choices []Choice, y int) options {
	memory := func(c int) float64 { return float64(y)*choices[c].InFlight + choices[c].Fixed }
	byTime := make([]int, len(choices))
	for c := range byTime {
		byTime[c] = c
	}
	slices.SortStableFunc(byTime, func(a, b int) int {
		return cmp.Or(cmp.Compare(choices[a].Time, choices[b].Time), cmp.Compare(memory(a), memory(b)))
	})
	var o options
	for _, c := range byTime {
		if n := len(o.memory); n == 0 || memory(c) < o.memory[n-1] {
			o.choice = append(o.choice, c)
			o.time = append(o.time, choices[c].Time)
			o.memory = append(o.memory, memory(c))
		}
	}
	return o
}

// steepest is the next corner of the lower hull after i.
func (o *options) steepest(i int) int {
	best := i + 1
	for j := i + 2; j < len(o.choice); j++ {
		if (o.time[j]-o.time[i])*(o.memory[i]-o.memory[best]) <= (o.time[best]-o.time[i])*(o.memory[i]-o.memory[j]) {
			best = j
		}
	}
	return best
}

// fastest and least are the ends of the trade.
func (o *options) fastest() (time, memory float64) { return o.time[0], o.memory[0] }
func (o *options) least() float64                  { return o.memory[len(o.memory)-1] }
