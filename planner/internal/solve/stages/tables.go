package stages

import (
	"math"
)

// network is the problem's graph with the costs of its edges, by tensor degree.
type network struct {
	*ordered
	out, in [][]arc
}

// arc leads to the node at an edge's other end.
type arc struct {
	node int
	*Edge
}

// search looks for pipelines whose stages are differences of two sets of a family. Its tables are
// sums over every set.
type search struct {
	*Problem
	*network
	sets *family
	// lacks counts the nodes that cannot run, by tensor degree.
	lacks [][]float64
	// fast has the fastest choices, by tensor and data degree: their time with synchronization, and
	// their memory.
	fast [][]fastest
	// work is a lower bound of the device time to run a set, and sends of the time to send its
	// outputs. Field hold is a lower bound of its device memory with two micro-batches in flight.
	work, sends, hold []float64
	// smallest caches the least memory, by tensor degree and micro-batches in flight. views caches
	// the nodes' options by these and the data degree.
	smallest map[[2]int][]float64
	views    map[[3]int]*view
	// solved caches the results of the exact knapsack.
	solved map[stageKey]timeRange
	// The walk below one set: when it last reached each set, and the transfers of the stage between
	// the two, by tensor degree.
	met       []int32
	walk      int32
	transfers []float64
	stack     []int32
}

type fastest struct{ time, inFlight, fixed []float64 }

type (
	stageKey  struct{ upper, lower, tensor, data, inFlight int32 }
	timeRange struct{ lower, upper float64 }
)

func newSearch(problem *Problem, graph *network, sets *family) *search {
	within := &search{
		Problem: problem, network: graph, sets: sets,
		smallest: make(map[[2]int][]float64), views: make(map[[3]int]*view), solved: make(map[stageKey]timeRange),
		met: make([]int32, sets.Len()), transfers: make([]float64, sets.Len()*len(problem.Tensor)),
	}
	within.work = within.sums(problem.leastWork)
	within.sends = within.sums(func(node int) float64 { return graph.leastSent(node, problem.Tensor) })
	within.hold = within.sums(problem.leastHold)
	for tensor := range problem.Tensor {
		within.lacks = append(within.lacks, within.sums(func(node int) float64 {
			if len(problem.Nodes[node].Choices[tensor]) == 0 {
				return 1
			}
			return 0
		}))
		var fast []fastest
		for data := range problem.Data {
			pick := func(of func(choice *Choice) float64) []float64 {
				return within.sums(func(node int) float64 {
					if choice := problem.fastest(node, tensor, data); choice != nil {
						return of(choice)
					}
					return 0
				})
			}
			fast = append(fast, fastest{
				pick(func(choice *Choice) float64 { return problem.time(choice, data) }),
				pick(func(choice *Choice) float64 { return choice.InFlight }),
				pick(func(choice *Choice) float64 { return choice.Fixed }),
			})
		}
		within.fast = append(within.fast, fast)
	}
	return within
}

// sums returns the sum of a value over the nodes of every set.
func (within *search) sums(of func(node int) float64) []float64 {
	return within.sets.Sums(len(within.Nodes), of)
}

// time returns the time of a choice in a stage of a data degree, with synchronization of its
// weights.
func (problem *Problem) time(choice *Choice, data int) float64 {
	replicas := float64(problem.Data[data])
	return choice.Time/replicas + problem.Resync*choice.Weights*(replicas-1)/replicas
}

// fastest returns the node's fastest choice, nil if it has none.
func (problem *Problem) fastest(node, tensor, data int) *Choice {
	var best *Choice
	for i := range problem.Nodes[node].Choices[tensor] {
		choice := &problem.Nodes[node].Choices[tensor][i]
		if best == nil || problem.time(choice, data) < problem.time(best, data) {
			best = choice
		}
	}
	return best
}

// leastWork returns the least device time of a node. With d replicas each does a d-th of it, and
// synchronization only adds time.
func (problem *Problem) leastWork(node int) float64 {
	return problem.least(node, func(choice *Choice) float64 { return choice.Time })
}

// leastSent returns how a node changes the least device time to send its set's outputs. Its own
// readers outside count, and the nodes that it reads no longer send to it.
func (graph *network) leastSent(node int, tensor []int) float64 {
	sum := 0.0
	for _, edge := range graph.out[node] {
		sum += edge.leastSend(tensor)
	}
	for _, edge := range graph.in[node] {
		sum -= edge.leastSend(tensor)
	}
	return sum
}

func (edge *Edge) leastSend(tensor []int) float64 {
	least := math.Inf(1)
	for i, time := range edge.Send {
		least = min(least, time*float64(tensor[i]))
	}
	return least
}

// leastHold returns the least device memory of a node if a stage follows its own. Each of its
// replicas then has two micro-batches in flight.
func (problem *Problem) leastHold(node int) float64 {
	return problem.least(node, func(choice *Choice) float64 { return choice.InFlight*2 + choice.Fixed })
}

// least returns the least of a figure of each device, summed over the devices that a choice takes.
func (problem *Problem) least(node int, each func(*Choice) float64) float64 {
	least := math.Inf(1)
	for tensor, choices := range problem.Nodes[node].Choices {
		for i := range choices {
			least = min(least, each(&choices[i])*float64(problem.Tensor[tensor]))
		}
	}
	return least
}

// least returns the smallest device memory of every set.
func (within *search) least(tensor, inFlight int) []float64 {
	key := [2]int{tensor, inFlight}
	sums, known := within.smallest[key]
	if !known {
		sums = within.sums(func(node int) float64 {
			choices := within.Nodes[node].Choices[tensor]
			if len(choices) == 0 {
				return 0
			}
			least := math.Inf(1)
			for i := range choices {
				least = min(least, choices[i].InFlight*float64(inFlight)+choices[i].Fixed)
			}
			return least
		})
		within.smallest[key] = sums
	}
	return sums
}

// view returns the nodes' options in a stage of these degrees.
func (within *search) view(tensor, data, inFlight int) *view {
	key := [3]int{tensor, data, inFlight}
	seen, known := within.views[key]
	if !known {
		seen = newView(len(within.Nodes), func(node int) []option {
			var options []option
			choices := within.Nodes[node].Choices[tensor]
			for i := range choices {
				options = append(options, option{Time: within.time(&choices[i], data), Memory: choices[i].InFlight*float64(inFlight) + choices[i].Fixed})
			}
			return options
		})
		seen.fastest = within.sums(func(node int) float64 {
			if opts := &seen.Nodes[node]; len(opts.Memory) > 0 {
				_, memory := opts.Fastest()
				return memory
			}
			return 0
		})
		within.views[key] = seen
	}
	return seen
}
