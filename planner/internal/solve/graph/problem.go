package graph

import (
	"errors"
	"fmt"
	"math"
)

// Problem is a graph and the devices it goes on. Times are in any one unit,
// sizes in bytes.
type Problem struct {
	Nodes []Node
	// Edges join nodes, tail to head: the head reads the tail's output.
	Edges [][2]int
	// Kinds are the devices, alike within a kind.
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

// Room is the capacity and what sums of fractions may round by: sizes that are
// equal to it on paper fit. Score allows twice as much, for its sums have an
// order of their own.
func (k *Kind) Room() float64 { return k.Capacity * (1 + 0.5e-12) }

// Devices is the number of devices of all kinds.
func (p *Problem) Devices() int {
	total := 0
	for _, k := range p.Kinds {
		total += k.Count
	}
	return total
}

// KindOf is the kind of a device; devices are numbered kind by kind.
func (p *Problem) KindOf(device int) int {
	for k := range p.Kinds {
		if device -= p.Kinds[k].Count; device < 0 {
			return k
		}
	}
	return -1
}

// Check reports every fault of the problem's form; a cycle is found later,
// where order matters.
func (p *Problem) Check() error {
	var faults []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	wrong(len(p.Nodes) == 0, "no nodes")
	wrong(p.Devices() == 0, "no devices")
	for i, k := range p.Kinds {
		wrong(k.Count < 0, "kinds[%d]: %d devices", i, k.Count)
		wrong(!(k.Capacity > 0), "kinds[%d]: a capacity of %v bytes", i, k.Capacity)
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		wrong(len(n.Time) != len(p.Kinds), "nodes[%d] %q: %d times for %d kinds of devices", i, n.Name, len(n.Time), len(p.Kinds))
		for k, t := range n.Time {
			wrong(!(t >= 0), "nodes[%d] %q: a time of %v on kind %d", i, n.Name, t, k)
		}
		wrong(!(n.Size >= 0) || math.IsInf(n.Size, 1), "nodes[%d] %q: a size of %v bytes", i, n.Name, n.Size)
		wrong(!(n.Transfer >= 0) || math.IsInf(n.Transfer, 1), "nodes[%d] %q: a transfer of %v", i, n.Name, n.Transfer)
	}
	for i, e := range p.Edges {
		wrong(min(e[0], e[1]) < 0 || max(e[0], e[1]) >= len(p.Nodes) || e[0] == e[1],
			"edges[%d]: from %d to %d joins no two of the %d nodes", i, e[0], e[1], len(p.Nodes))
	}
	return errors.Join(faults...)
}
