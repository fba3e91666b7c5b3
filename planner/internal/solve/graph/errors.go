package graph

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/devmap-dev/devmap/planner/internal/solve/cycle"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// CycleError says that the nodes cannot be put in order.
type CycleError struct {
	// Names are the nodes of one cycle, each feeding the next and the last
	// the first.
	Names []string
}

func (e *CycleError) Error() string {
	return fmt.Sprintf("the graph has a cycle: %s → %s", strings.Join(e.Names, " → "), e.Names[0])
}

// Acyclic looks for a cycle in the nodes' own edges, before groups are formed.
func (p *Problem) Acyclic() error {
	g := simple.NewDirectedGraph()
	for v := range p.Nodes {
		g.AddNode(simple.Node(v))
	}
	for _, e := range p.Edges {
		g.SetEdge(g.NewEdge(simple.Node(e[0]), simple.Node(e[1])))
	}
	var cyclic topo.Unorderable
	if _, err := topo.Sort(g); !errors.As(err, &cyclic) {
		return err
	}
	var names []string
	for _, v := range cycle.In(g, cyclic[0]) {
		names = append(names, p.Nodes[v].Name)
	}
	return &CycleError{names}
}

// InfeasibleError says that no placement keeps the rules, or that none was
// found, and why.
type InfeasibleError struct {
	// Nodes must share a device and fit none; empty: each fits, all do not.
	Nodes []string
	// Size is theirs, or of all nodes; Capacity is the largest device's, or
	// that of all devices.
	Size, Capacity float64
	Reason         string
	// InOrder: it is said of contiguous placements, and another may keep the
	// rules. Unproved: the search was not exhaustive, and one may be there.
	InOrder, Unproved bool
}

func (e *InfeasibleError) Error() string {
	switch {
	case e.Unproved:
		return "no placement was found, which is no proof that there is none: " + e.Reason
	case e.InOrder:
		return "no contiguous placement is possible: " + e.Reason
	}
	return "no placement is possible: " + e.Reason
}

// Feasible tells items that fit no device, and sizes that together do not fit.
func (in *Instance) Feasible() error {
	for i := range in.Nodes {
		if err := in.itemFits(i); err != nil {
			return err
		}
	}
	room, size := 0.0, Sum(in.Size)
	for _, k := range in.Problem.Kinds {
		if k.Count > 0 {
			room += float64(k.Count) * k.Capacity
		}
	}
	if size*(1-Rounding) > room {
		return &InfeasibleError{Size: size, Capacity: room, Reason: fmt.Sprintf(
			"the nodes' sizes sum to %.0f bytes and the %d devices hold %.0f together", size, in.Problem.Devices(), room)}
	}
	return nil
}

func (in *Instance) itemFits(i int) error {
	largest, smallest := 0.0, math.Inf(1)
	var why []string
	for k, kind := range in.Problem.Kinds {
		if kind.Count == 0 {
			continue
		}
		largest, smallest = max(largest, kind.Capacity), min(smallest, kind.Capacity)
		switch {
		case math.IsInf(in.Time[k][i], 1):
			why = append(why, fmt.Sprintf("cannot run on %s", kind.label(k)))
		case in.Size[i] > kind.Room():
			why = append(why, fmt.Sprintf("%s holds %.0f", kind.label(k), kind.Capacity))
		default:
			return nil
		}
	}
	e := &InfeasibleError{Size: in.Size[i], Capacity: largest}
	for _, v := range in.Nodes[i] {
		e.Nodes = append(e.Nodes, in.Problem.Nodes[v].Name)
	}
	e.Reason = fmt.Sprintf("%s, %.0f bytes, %s no device: %s", Named(e.Nodes), e.Size, fits(len(e.Nodes)), strings.Join(why, ", "))
	return e
}

func (k *Kind) label(i int) string {
	if k.Name == "" {
		return fmt.Sprintf("kind %d", i)
	}
	return k.Name
}

func fits(nodes int) string {
	if nodes == 1 {
		return "fits"
	}
	return "fit"
}

func Named(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("node %q", names[0])
	}
	const shown = 4
	quoted := make([]string, 0, shown)
	for _, n := range names[:min(shown, len(names))] {
		quoted = append(quoted, fmt.Sprintf("%q", n))
	}
	more := ""
	if n := len(names) - shown; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("nodes %s%s, which must share a device", strings.Join(quoted, ", "), more)
}
