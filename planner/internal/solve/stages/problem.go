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
func (p *Problem) Check() error {
	var faults []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	wrong(len(p.Nodes) == 0, "no nodes")
	wrong(p.Devices < 1, "%d devices", p.Devices)
	wrong(!(p.Capacity > 0), "a capacity of %v bytes", p.Capacity)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		wrong(len(n.Choices) == 0, "nodes[%d] %q: no way to run it", i, n.Name)
		for c, o := range n.Choices {
			wrong(!fine(o.Time), "nodes[%d] %q, choice %d: a time of %v", i, n.Name, c, o.Time)
			wrong(!fine(o.InFlight) || !fine(o.Fixed), "nodes[%d] %q, choice %d: memory of %v a micro-batch and %v", i, n.Name, c, o.InFlight, o.Fixed)
		}
	}
	for i, e := range p.Edges {
		if min(e.From, e.To) < 0 || max(e.From, e.To) >= len(p.Nodes) || e.From == e.To {
			wrong(true, "edges[%d]: from %d to %d joins no two of the %d nodes", i, e.From, e.To, len(p.Nodes))
			continue
		}
		wrong(!fine(e.Send) || !fine(e.Receive), "edges[%d]: a time of %v to send and %v to receive", i, e.Send, e.Receive)
	}
	return errors.Join(faults...)
}

// fine: finite and not negative.
func fine(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }
