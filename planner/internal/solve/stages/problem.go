// Package stages cuts a graph into a pipeline whose stages may be replicated and tensor-parallel. A
// stage takes d·t devices of one kind. Each of its d replicas takes every d-th micro-batch. Each
// node has several ways to run on t devices, such as "keep the activations" and "recompute them".
//
// It is the problem of Tarnawski et al., "Piper: Multidimensional Planner for DNN Parallelization"
// (NeurIPS 2021), §3. It is a plain pipeline if all degrees are 1. Without memory and transfers
// that is PipeDream's (SOSP 2019), §3.1, without replicas.
//
// [Solve] finds the pipeline with the fastest slowest stage and proves it. Under a limit on the
// stages' times, it reaches sets from the end of the graph (probe.go), over families of down-sets
// (sets.go). The nodes' choices within the memory are a multiple-choice knapsack (knapsack.go,
// lists.go). [Problem.Score] evaluates pipelines and shares no code with the solver.
package stages

import (
	"errors"
	"fmt"
	"math"
)

// Problem is a graph and identical devices. Times have any one unit, per micro-batch; sizes are
// bytes.
type Problem struct {
	Nodes []Node
	Edges []Edge
	// Devices limits the devices of all stages. Replicas limits the sum of their data-parallel
	// degrees: it is the number of micro-batches of a batch.
	Devices, Replicas int
	// Data and Tensor are the degrees that a stage may have, ascending.
	Data, Tensor []int
	// Capacity limits the memory of a device, in bytes; +Inf: no limit.
	Capacity float64
	// Resync times (d − 1)/d is the time of a stage of d replicas for each byte of its weights.
	Resync float64
}

// Node is an indivisible unit.
type Node struct {
	Name string
	// Choices are the ways to run it, by the index of the degree in Tensor. With none, the node
	// cannot run at that degree.
	Choices [][]Choice
}

// Choice is one way to run a node on the devices of one replica.
type Choice struct {
	Name string
	Time float64
	// Weights are the bytes on a device that replicas have to synchronize.
	Weights float64
	// InFlight is the memory of each micro-batch in flight on a device. Fixed is the memory used
	// once.
	InFlight, Fixed float64
}

// Edge is the data that the node To reads from the node From. If the two are in different stages,
// it takes Send of the first stage's time and Receive of the second's. Both are indexed by that
// stage's degree in Tensor, and divided among its replicas. Edges between the same two nodes add
// up.
type Edge struct {
	From, To      int
	Send, Receive []float64
}

// Check reports every malformed field. [Solve] finds cycles.
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

// fine reports a finite value that is not negative.
func fine(value float64) bool { return value >= 0 && !math.IsInf(value, 1) }
