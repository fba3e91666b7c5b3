package stages

import (
	"errors"
	"fmt"
	"math"
)

// Problem is a graph and the devices of a straight pipeline. Times are in any
// one unit, sizes in bytes.
type Problem struct {
	Nodes []Node
	Edges []Edge
	// Devices bounds the number of stages.
	Devices int
	// Capacity bounds the memory of a stage, in bytes; +Inf: no bound.
	Capacity float64
}

// Node is what must not be split.
type Node struct {
	Name string
	// Choices are the ways to run it, at least one.
	Choices []Choice
}

// Choice is one way to run a node.
type Choice struct {
	Name string
	Time float64
	// InFlight is what each micro-batch in flight keeps, Fixed what is kept
	// once.
	InFlight, Fixed float64
}

// Edge is what the node To reads of the node From. Where the two are in
// different stages it takes Send of the first one's time and Receive of the
// second one's. Edges between the same two nodes add up.
type Edge struct {
	From, To      int
	Send, Receive float64
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
	wrong(!(problem.Capacity > 0), "a capacity of %v bytes", problem.Capacity)
	for i := range problem.Nodes {
		node := &problem.Nodes[i]
		wrong(len(node.Choices) == 0, "nodes[%d] %q: no way to run it", i, node.Name)
		for c, choice := range node.Choices {
			wrong(!fine(choice.Time), "nodes[%d] %q, choice %d: a time of %v", i, node.Name, c, choice.Time)
			wrong(!fine(choice.InFlight) || !fine(choice.Fixed), "nodes[%d] %q, choice %d: memory of %v a micro-batch and %v", i, node.Name, c, choice.InFlight, choice.Fixed)
		}
	}
	for i, edge := range problem.Edges {
		if min(edge.From, edge.To) < 0 || max(edge.From, edge.To) >= len(problem.Nodes) || edge.From == edge.To {
			wrong(true, "edges[%d]: from %d to %d joins no two of the %d nodes", i, edge.From, edge.To, len(problem.Nodes))
			continue
		}
		wrong(!fine(edge.Send) || !fine(edge.Receive), "edges[%d]: a time of %v to send and %v to receive", i, edge.Send, edge.Receive)
	}
	return errors.Join(faults...)
}

// fine: finite and not negative.
func fine(value float64) bool { return value >= 0 && !math.IsInf(value, 1) }
