package latency

import (
	"errors"
	"math"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// instance is a problem as the solver works on it. What must share a call, or
// the CPUs, is a unit: a group, and groups that read each other in a circle,
// for between two calls that circle would be one of waiting. (With several
// calls a group may be spread over those of one accelerator; the search keeps
// it together, and the bound knows that it need not be.)
type instance struct {
	problem *Problem
	calls   int   // of one accelerator
	kinds   []int // of the accelerators
	cpu     int   // kind of the CPUs, -1: none
	slots   int   // calls of all accelerators

	unitOf   []int32
	nodes    [][]int32 // of a unit
	order    []int32   // the units, each behind those that it reads
	time     [][]float64
	size     []float64
	stays    []bool // on the CPUs: it fits no accelerator, or none runs it
	cpuTime  []float64
	transfer []float64
	reads    [][]int32 // nodes
	readBy   [][]int32
	above    [][]int32 // units that a unit reads, each once
	below    [][]int32
}

// newInstance contracts a problem's nodes to units.
func newInstance(problem *Problem) (*instance, error) {
	in := &instance{problem: problem, calls: problem.calls(), kinds: problem.Accelerators(), cpu: problem.cpu()}
	in.slots = in.calls * len(in.kinds)
	if err := problem.Acyclic(); err != nil {
		return nil, err
	}
	in.edges()
	in.contract()
	for unit := range in.nodes {
		fits, runs := false, in.cpu >= 0
		for kind := range problem.Kinds {
			runs = runs && (kind != in.cpu || !math.IsInf(in.time[kind][unit], 1))
		}
		for _, kind := range in.kinds {
			fits = fits || !math.IsInf(in.time[kind][unit], 1) && in.size[unit] <= problem.Kinds[kind].Room()
		}
		in.stays[unit] = !fits
		if !fits && !runs {
			return nil, in.nowhere(unit)
		}
	}
	return in, nil
}

func (in *instance) edges() {
	total := len(in.problem.Nodes)
	in.reads, in.readBy = make([][]int32, total), make([][]int32, total)
	in.cpuTime, in.transfer = make([]float64, total), make([]float64, total)
	seen := make(map[[2]int]bool, len(in.problem.Edges))
	for _, edge := range in.problem.Edges {
		if !seen[edge] {
			seen[edge] = true
			in.readBy[edge[0]] = append(in.readBy[edge[0]], int32(edge[1]))
			in.reads[edge[1]] = append(in.reads[edge[1]], int32(edge[0]))
		}
	}
	for node := range in.problem.Nodes {
		in.transfer[node] = in.problem.Nodes[node].Transfer
		if in.cpu >= 0 {
			in.cpuTime[node] = in.problem.Nodes[node].Time[in.cpu]
		}
	}
}

// contract makes the units, numbered in an order that every edge keeps.
func (in *instance) contract() {
	groups := simple.NewDirectedGraph()
	for node := range in.problem.Nodes {
		if group := int64(in.problem.Nodes[node].Group); groups.Node(group) == nil {
			groups.AddNode(simple.Node(group))
		}
	}
	for _, edge := range in.problem.Edges {
		if from, to := in.problem.Nodes[edge[0]].Group, in.problem.Nodes[edge[1]].Group; from != to {
			groups.SetEdge(groups.NewEdge(simple.Node(from), simple.Node(to)))
		}
	}
	circles := topo.TarjanSCC(groups) // the last first
	unit := make(map[int]int32)
	for i, circle := range circles {
		for _, group := range circle {
			unit[int(group.ID())] = int32(len(circles) - 1 - i)
		}
	}
	in.nodes = make([][]int32, len(circles))
	in.unitOf = make([]int32, len(in.problem.Nodes))
	in.size, in.stays = make([]float64, len(circles)), make([]bool, len(circles))
	in.time = make([][]float64, len(in.problem.Kinds))
	for kind := range in.time {
		in.time[kind] = make([]float64, len(circles))
	}
	for node := range in.problem.Nodes {
		one := &in.problem.Nodes[node]
		own := unit[one.Group]
		in.unitOf[node] = own
		in.nodes[own] = append(in.nodes[own], int32(node))
		in.size[own] += one.Size
		for kind, time := range one.Time {
			in.time[kind][own] += time
		}
	}
	in.neighbours()
}

func (in *instance) neighbours() {
	in.above, in.below = make([][]int32, len(in.nodes)), make([][]int32, len(in.nodes))
	seen := make(map[[2]int32]bool)
	for node, readers := range in.readBy {
		for _, reader := range readers {
			pair := [2]int32{in.unitOf[node], in.unitOf[reader]}
			if pair[0] != pair[1] && !seen[pair] {
				seen[pair] = true
				in.below[pair[0]] = append(in.below[pair[0]], pair[1])
				in.above[pair[1]] = append(in.above[pair[1]], pair[0])
			}
		}
	}
}

// place is the answer in the form that Score judges.
func (in *instance) place(slot []int32) []int {
	call := make([]int, len(in.unitOf))
	for node, unit := range in.unitOf {
		call[node] = int(slot[unit])
	}
	return call
}

// fits says whether a device may hold a unit beside what it holds.
func (in *instance) fits(device int, unit int32, held float64) bool {
	kind := in.kinds[device]
	return !in.stays[unit] && held+in.size[unit] <= in.problem.Kinds[kind].Room() && !math.IsInf(in.time[kind][unit], 1)
}

// onCPU says whether the CPUs run a unit.
func (in *instance) onCPU(unit int32) bool {
	return in.cpu >= 0 && !math.IsInf(in.time[in.cpu][unit], 1)
}

// nowhere is the error of a unit that runs nowhere, in the words of the
// problem of loads, whose rules for one unit are the same.
func (in *instance) nowhere(unit int) error {
	join := make([]int, len(in.unitOf))
	for node, own := range in.unitOf {
		join[node] = int(own)
	}
	err := graph.NewInstance(in.problem.Problem, join).Feasible()
	if err == nil {
		return errors.New("a unit runs nowhere (please report this)")
	}
	return err
}
