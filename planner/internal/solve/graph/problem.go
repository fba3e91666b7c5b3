package graph

import (
	"errors"
	"fmt"
	"math"
)

// Problem is a graph and devices to place it on. Times have any one unit; sizes are bytes.
type Problem struct {
	Nodes []Node
	// Edges join nodes as (tail, head): the head reads the tail's output.
	Edges [][2]int
	// Kinds lists the devices, identical within a kind.
	Kinds []Kind
}

// Node is an indivisible unit.
type Node struct {
	Name string
	// Time is the node's time on a device of each kind; +Inf: it cannot run there.
	Time []float64
	Size float64
	// Transfer is the time to send the output, on the sending device and on every receiving device.
	Transfer float64
	// Group: nodes of one group share a device.
	Group int
	// Backward marks the backward pass. Only the forward pass has an order; a backward node follows
	// its group.
	Backward bool
}

// Kind is a number of equal devices.
type Kind struct {
	Name  string
	Count int
	// Capacity limits the sizes on one device, in bytes; +Inf: no limit.
	Capacity float64
	// FreeTransfers: sending and receiving take no time on the device.
	FreeTransfers bool
}

// SizeLimit returns the capacity plus the rounding error of sums: exactly equal sizes fit. Score
// allows twice that error, as it adds in another order.
func (kind *Kind) SizeLimit() float64 { return kind.Capacity * (1 + 0.5e-12) }

// Devices returns the number of devices of all kinds.
func (problem *Problem) Devices() int {
	total := 0
	for _, kind := range problem.Kinds {
		total += kind.Count
	}
	return total
}

// KindOf returns the kind of a device; devices are numbered kind by kind. It returns -1 for a
// device that does not exist.
func (problem *Problem) KindOf(device int) int {
	for kind := range problem.Kinds {
		if device -= problem.Kinds[kind].Count; device < 0 {
			return kind
		}
	}
	return -1
}

// Check reports every malformed field. It does not look for cycles.
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
