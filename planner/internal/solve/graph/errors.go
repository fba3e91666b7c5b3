package graph

import (
	"fmt"
	"math"
	"strings"
)

// CycleError says that the nodes have no order.
type CycleError struct {
	// Names are the nodes of one cycle. Each feeds the next, and the last feeds the first.
	Names []string
}

// Error implements error.
func (err *CycleError) Error() string {
	return fmt.Sprintf("the graph has a cycle: %s → %s", strings.Join(err.Names, " → "), err.Names[0])
}

// Acyclic returns a [*CycleError] if the nodes' own edges have a cycle, without their groups.
func (problem *Problem) Acyclic() error {
	var names []string
	for _, node := range Cycle(len(problem.Nodes), problem.Edges) {
		names = append(names, problem.Nodes[node].Name)
	}
	if names == nil {
		return nil
	}
	return &CycleError{names}
}

// InfeasibleError says that no placement satisfies the rules, or that none was found, and why.
type InfeasibleError struct {
	// Nodes must share a device and fit on none. Empty: single nodes fit, but not all together.
	Nodes []string
	// Size is the size of Nodes, or of all nodes. Capacity is that of the largest device, or of all
	// devices.
	Size, Capacity float64
	Reason         string
	// InOrder: only contiguous placements are impossible; another placement may satisfy the rules.
	InOrder bool
}

// Error implements error.
func (err *InfeasibleError) Error() string {
	if err.InOrder {
		return "no contiguous placement is possible: " + err.Reason
	}
	return "no placement is possible: " + err.Reason
}

// Feasible returns an error for items that fit on no device, and for sizes that exceed all devices
// together.
func (in *Instance) Feasible() error {
	for i := range in.Nodes {
		if err := in.itemFits(i); err != nil {
			return err
		}
	}
	capacity, size := 0.0, Sum(in.Size)
	for _, kind := range in.Problem.Kinds {
		if kind.Count > 0 {
			capacity += float64(kind.Count) * kind.Capacity
		}
	}
	if size*(1-Rounding) > capacity {
		return &InfeasibleError{Size: size, Capacity: capacity, Reason: fmt.Sprintf(
			"the nodes' sizes sum to %.0f bytes and the %d devices hold %.0f together", size, in.Problem.Devices(), capacity)}
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
		case in.Size[i] > kind.SizeLimit():
			why = append(why, fmt.Sprintf("%s holds %.0f", kind.label(k), kind.Capacity))
		default:
			return nil
		}
	}
	err := &InfeasibleError{Size: in.Size[i], Capacity: largest}
	for _, node := range in.Nodes[i] {
		err.Nodes = append(err.Nodes, in.Problem.Nodes[node].Name)
	}
	err.Reason = fmt.Sprintf("%s, %.0f bytes, %s no device: %s", Named(err.Nodes), err.Size, fits(len(err.Nodes)), strings.Join(why, ", "))
	return err
}

func (kind *Kind) label(i int) string {
	if kind.Name == "" {
		return fmt.Sprintf("kind %d", i)
	}
	return kind.Name
}

func fits(nodes int) string {
	if nodes == 1 {
		return "fits"
	}
	return "fit"
}

// Named quotes the first few names of nodes.
func Named(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("node %q", names[0])
	}
	const shown = 4
	quoted := make([]string, 0, shown)
	for _, name := range names[:min(shown, len(names))] {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	more := ""
	if count := len(names) - shown; count > 0 {
		more = fmt.Sprintf(" and %d more", count)
	}
	return fmt.Sprintf("nodes %s%s, which must share a device", strings.Join(quoted, ", "), more)
}
