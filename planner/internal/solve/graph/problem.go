package graph

import (
	"errors"
	"fmt"
	"math"
)

// Problem is a graph and devices to place it on. Times are in any one unit,
// sizes in bytes.
type Problem struct {
	Nodes []Node
	// Edges join nodes, tail to head: the head reads the tail's output.
	Edges [][2]int
	// Kinds are the devices, identical within a kind.
	Kinds []Kind
}

// Node is what must not be split.
type Node struct {
	Name string
	// Time is its time on a device of each kind; +Inf: it cannot run there.
	Time []float64
	Size float64
	// Transfer is the time its output takes on the device that sends it and
	// on every device that receives it.
	Transfer float64
	// Group: nodes of one group share a device.
	Group int
	// Backward marks the backward pass. Order is that of the forward pass;
	// a backward node follows its group.
	Backward bool
}

// Kind is a number of like devices.
type Kind struct {
	Name  string
	Count int
	// Capacity bounds the sizes on one device, in bytes; +Inf: no bound.
	Capacity float64
	// FreeTransfers: the device does not pay for what it sends and receives.
	FreeTransfers bool
}

// SizeLimit is the capacity and what sums of fractions may round by: sizes that are
// equal to it on paper fit. Score allows twice as much, for its sums have an
// order of their own.
func (kind *Kind) SizeLimit() float64 { return kind.Capacity * (1 + 0.5e-12) }

// Devices is the number of devices of all kinds.
func (problem *Problem) Devices() int {
	total := 0
	for _, kind := range problem.Kinds {
		total += kind.Count
	}
	return total
}

// KindOf is the kind of a device; devices are numbered kind by kind.
func (problem *Problem) KindOf(device int) int {
	for kind := range problem.Kinds {
		if device -= problem.Kinds[kind].Count; device < 0 {
			return kind
		}
	}
	return -1
}

// Check reports every fault of the problem's form; a cycle is found later,
// where order matters.
func (problem *Problem) Check() error {
	var faults []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	wrong(len(problem.Nodes) == 0, "no nodes")
	wrong(problem.Devices() == 0, "no devices")
	for i, kind := range problem.Kinds {
		wrong(kind.Count < 0, "kinds[%d]: %d devices", i, kind.Count)
		wrong(!(kind.Capacity > 0), "kinds[%d]: a capacity of %v bytes", i, kind.Capacity)
	}
	for i := range problem.Nodes {
		node := &problem.Nodes[i]
		wrong(len(node.Time) != len(problem.Kinds), "nodes[%d] %q: %d times for %d kinds of devices", i, node.Name, len(node.Time), len(problem.Kinds))
		for kind, time := range node.Time {
			wrong(!(time >= 0), "nodes[%d] %q: a time of %v on kind %d", i, node.Name, time, kind)
		}
		wrong(!(node.Size >= 0) || math.IsInf(node.Size, 1), "nodes[%d] %q: a size of %v bytes", i, node.Name, node.Size)
		wrong(!(node.Transfer >= 0) || math.IsInf(node.Transfer, 1), "nodes[%d] %q: a transfer of %v", i, node.Name, node.Transfer)
	}
	for i, edge := range problem.Edges {
		wrong(min(edge[0], edge[1]) < 0 || max(edge[0], edge[1]) >= len(problem.Nodes) || edge[0] == edge[1],
			"edges[%d]: from %d to %d joins no two of the %d nodes", i, edge[0], edge[1], len(problem.Nodes))
	}
	return errors.Join(faults...)
}
