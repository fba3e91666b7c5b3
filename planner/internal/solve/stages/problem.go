// Package stages cuts a graph into a pipeline whose stages may be replicated and
// tensor-parallel: a stage takes d·t devices of one kind, each of
// its d replicas every d-th micro-batch, each node one of the ways to run it on t
// devices, such as "keep the activations" and "recompute them".
//
// It is the problem of Tarnawski et al., "Piper: Multidimensional Planner for
// DNN Parallelization" (NeurIPS 2021), §3. With degrees of 1 alone it is a straight
// pipeline; without memory and transfers that is PipeDream's (SOSP 2019), §3.1,
// without replicas.
//
// [Solve] finds the pipeline whose slowest stage is the fastest and proves it:
// for a limit on the stages' times, sets are reached from the end of the graph
// (probe.go), over families of down-sets (sets.go); what a stage's nodes may be
// within the memory is a multiple-choice knapsack (knapsack.go, lists.go).
// [Problem.Score] judges pipelines and shares no code with the solver.
package stages

import (
	"errors"
	"fmt"
	"math"
)

// Problem is a graph and identical devices. Times are in any one unit,
// for a micro-batch; sizes in bytes.
type Problem struct {
	Nodes []Node
	Edges []Edge
	// Devices bounds the devices of all stages, Replicas the sum of their
	// degrees of data parallelism: the micro-batches of a batch.
	Devices, Replicas int
	// Data and Tensor are the degrees that a stage may have, ascending.
	Data, Tensor []int
	// Capacity bounds the memory of a device, in bytes; +Inf: no bound.
	Capacity float64
	// Resync is what a stage of d replicas takes for each byte of its weights,
	// times (d − 1)/d.
	Resync float64
}

// Node is what must not be split.
type Node struct {
	Name string
	// Choices are the ways to run it, by the index of the degree in Tensor; none:
	// the node cannot be run so.
	Choices [][]Choice
}

// Choice is one way to run a node on the devices of one replica.
type Choice struct {
	Name string
	Time float64
	// Weights are a device's, which replicas have to bring together.
	Weights float64
	// InFlight is what each micro-batch in flight keeps on a device, Fixed what
	// is kept once.
	InFlight, Fixed float64
}

// Edge is what the node To reads of the node From. Where the two are in
// different stages it takes Send of the first one's time and Receive of the
// second one's, by the index of that stage's degree in Tensor, shared by its
// replicas. Edges between the same two nodes add up.
type Edge struct {
	From, To      int
	Send, Receive []float64
}

// Check reports every fault of the problem's form; a cycle is found by
// [Solve].
func (problem *Problem) Check() error {
	var faults []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	wrong(len(problem.Nodes) == 0, "no nodes")
	wrong(problem.Devices < 1, "%d devices", problem.Devices)
	wrong(problem.Replicas < 1, "%d replicas at most", problem.Replicas)
	wrong(!(problem.Capacity > 0), "a capacity of %v bytes", problem.Capacity)
	wrong(!fine(problem.Resync), "a time of %v a byte of weights", problem.Resync)
	for name, degrees := range map[string][]int{"data": problem.Data, "tensor": problem.Tensor} {
		wrong(len(degrees) == 0, "no degree of %s parallelism", name)
		for i, degree := range degrees {
			wrong(degree < 1 || i > 0 && degree <= degrees[i-1], "degree %d of %s parallelism: 1 or more, ascending", degree, name)
		}
	}
	for i := range problem.Nodes {
		problem.checkNode(i, wrong)
	}
	for i, edge := range problem.Edges {
		if min(edge.From, edge.To) < 0 || max(edge.From, edge.To) >= len(problem.Nodes) || edge.From == edge.To {
			wrong(true, "edges[%d]: from %d to %d joins no two of the %d nodes", i, edge.From, edge.To, len(problem.Nodes))
			continue
		}
		wrong(len(edge.Send) != len(problem.Tensor) || len(edge.Receive) != len(problem.Tensor), "edges[%d]: times of %d and %d degrees for %d", i, len(edge.Send), len(edge.Receive), len(problem.Tensor))
		for _, times := range [][]float64{edge.Send, edge.Receive} {
			for _, time := range times {
				wrong(!fine(time), "edges[%d]: a time of %v", i, time)
			}
		}
	}
	return errors.Join(faults...)
}

func (problem *Problem) checkNode(at int, wrong func(bad bool, format string, args ...any)) {
	node := &problem.Nodes[at]
	wrong(len(node.Choices) != len(problem.Tensor), "nodes[%d] %q: ways for %d degrees of %d", at, node.Name, len(node.Choices), len(problem.Tensor))
	some := false
	for degree, choices := range node.Choices {
		some = some || len(choices) > 0
		for i, choice := range choices {
			wrong(!fine(choice.Time) || !fine(choice.Weights), "nodes[%d] %q, degree %d, choice %d: a time of %v and weights of %v bytes", at, node.Name, degree, i, choice.Time, choice.Weights)
			wrong(!fine(choice.InFlight) || !fine(choice.Fixed), "nodes[%d] %q, degree %d, choice %d: memory of %v a micro-batch and %v", at, node.Name, degree, i, choice.InFlight, choice.Fixed)
		}
	}
	wrong(!some, "nodes[%d] %q: no way to run it", at, node.Name)
}

// fine: finite and not negative.
func fine(value float64) bool { return value >= 0 && !math.IsInf(value, 1) }
