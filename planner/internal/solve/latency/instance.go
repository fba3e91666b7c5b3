package latency

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// instance is a problem as a search or a bound works on it: units are nodes
// that are placed together (join.go).
type instance struct {
	problem *Problem
	calls   int   // of one accelerator
	kinds   []int // of the accelerators that can be of use, of a kind one a node
	device  []int // their numbers
	unlike  []int // the kinds there are among them
	cpu     int   // kind of the CPUs, -1: none
	slots   int   // calls of all accelerators

	unitOf   []int32
	nodes    [][]int32 // of a unit
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

// newInstance contracts the nodes that join maps to the same number.
func newInstance(problem *Problem, join []int) (*instance, error) {
	in := &instance{problem: problem, calls: problem.calls(), cpu: problem.cpu()}
	of := make(map[int]int)
	for device, kind := range problem.Accelerators() {
		of[kind]++
		if of[kind] <= len(problem.Nodes) {
			in.kinds, in.device = append(in.kinds, kind), append(in.device, device)
		}
	}
	in.slots, in.unlike = in.calls*len(in.kinds), slices.Compact(slices.Clone(in.kinds))
	in.edges()
	in.contract(join)
	for unit := range in.nodes {
		fits, runs := false, in.cpu >= 0
		for kind := range problem.Kinds {
			runs = runs && (kind != in.cpu || !math.IsInf(in.time[kind][unit], 1))
		}
		for _, kind := range in.unlike {
			fits = fits || !math.IsInf(in.time[kind][unit], 1) && in.size[unit] <= problem.Kinds[kind].Room()
		}
		in.stays[unit] = !fits
		if !fits && !runs {
			return nil, in.nowhere()
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

// contract makes the units, numbered in an order that every edge keeps where
// there is one.
func (in *instance) contract(join []int) {
	unit := in.numbered(join)
	in.nodes = make([][]int32, len(unit))
	in.unitOf = make([]int32, len(in.problem.Nodes))
	in.size, in.stays = make([]float64, len(unit)), make([]bool, len(unit))
	in.time = make([][]float64, len(in.problem.Kinds))
	for kind := range in.time {
		in.time[kind] = make([]float64, len(unit))
	}
	for node := range in.problem.Nodes {
		one := &in.problem.Nodes[node]
		own := unit[join[node]]
		in.unitOf[node] = own
		in.nodes[own] = append(in.nodes[own], int32(node))
		in.size[own] += one.Size
		for kind, time := range one.Time {
			in.time[kind][own] += time
		}
	}
	in.neighbours()
}

// numbered puts the labels in an order: always one that nothing leads to, and
// where each is led to, they read each other in a circle, the one whose node is
// first in the order of the nodes.
func (in *instance) numbered(join []int) map[int]int32 {
	waits, next := make(map[int]int), make(map[int][]int)
	for node, readers := range in.readBy {
		for _, reader := range readers {
			if from, to := join[node], join[reader]; from != to {
				waits[to]++
				next[from] = append(next[from], to)
			}
		}
	}
	unit := make(map[int]int32)
	var open []int
	begin := func(label int) {
		if _, known := unit[label]; !known {
			unit[label] = int32(len(unit))
			open = append(open, label)
		}
	}
	order := in.sorted()
	for _, node := range order {
		if waits[join[node]] == 0 {
			begin(join[node])
		}
	}
	for _, node := range order {
		for ; len(open) > 0; open = open[1:] {
			for _, label := range next[open[0]] {
				waits[label]--
				if waits[label] == 0 {
					begin(label)
				}
			}
		}
		begin(join[node])
	}
	return unit
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

// calling is the call of each node, and callOf what a unit's nodes have of it.
func (in *instance) calling(slot []int32) []int32 {
	call := make([]int32, len(in.unitOf))
	for node, unit := range in.unitOf {
		call[node] = slot[unit]
	}
	return call
}

// answer is one in the problem's own numbers.
func (in *instance) answer(call []int32) []int {
	out := make([]int, len(call))
	for node, slot := range call {
		out[node] = OnCPU
		if slot >= 0 {
			out[node] = in.device[int(slot)/in.calls]*in.calls + int(slot)%in.calls
		}
	}
	return out
}

func (in *instance) callOf(call []int32) []int32 {
	slot := make([]int32, len(in.nodes))
	for unit, nodes := range in.nodes {
		slot[unit] = call[nodes[0]]
	}
	return slot
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
func (in *instance) nowhere() error {
	join := make([]int, len(in.unitOf))
	for node, own := range in.unitOf {
		join[node] = int(own)
	}
	err := graph.NewInstance(in.problem.Problem, join).Feasible()
	var none *graph.InfeasibleError
	if !errors.As(err, &none) {
		return cmp.Or(err, errors.New("a unit runs nowhere (please report this)"))
	}
	return none
}
