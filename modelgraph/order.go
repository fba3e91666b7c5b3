package modelgraph

import (
	"errors"

	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// order returns an error for a cycle, and sorts each unit's layers by data flow.
func (graph *Graph) order() error {
	forward := true
	for i := range graph.Layers {
		for _, j := range graph.Layers[i].InputLayers {
			if j == i {
				return cycleError([]string{graph.Layers[i].Name})
			}
			forward = forward && j < i
		}
	}
	if !forward { // only then can a cycle exist
		if err := graph.findCycle(); err != nil {
			return err
		}
	}
	for unit := range graph.Units {
		graph.Units[unit].Exec = graph.execOrder(unit)
	}
	return nil
}

func (graph *Graph) findCycle() error {
	directed := simple.NewDirectedGraph()
	for i := range graph.Layers {
		directed.AddNode(simple.Node(i))
	}
	for i := range graph.Layers {
		for _, j := range graph.Layers[i].InputLayers {
			directed.SetEdge(directed.NewEdge(simple.Node(j), simple.Node(i)))
		}
	}
	var cyclic topo.Unorderable
	if _, err := topo.Sort(directed); !errors.As(err, &cyclic) {
		return err
	}
	// A strongly connected part can have many cycles. The error names a shortest one through its
	// first layer, in the direction of the data.
	inside := make(map[int]bool)
	first := len(graph.Layers)
	for _, node := range cyclic[0] {
		inside[int(node.ID())] = true
		first = min(first, int(node.ID()))
	}
	return cycleError(graph.cycle(first, inside))
}

// cycle walks back over inputs, breadth first, until it reaches a layer again.
func (graph *Graph) cycle(start int, inside map[int]bool) []string {
	feeds := map[int]int{} // from a layer to the next one of the walk
	for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
		for _, j := range graph.Layers[queue[0]].InputLayers {
			if _, seen := feeds[j]; seen || !inside[j] {
				continue
			}
			feeds[j] = queue[0]
			queue = append(queue, j)
		}
		if _, closed := feeds[start]; closed {
			break
		}
	}
	names := []string{graph.Layers[start].Name}
	for i := feeds[start]; i != start; i = feeds[i] {
		names = append(names, graph.Layers[i].Name)
	}
	return names
}

// execOrder sorts a unit's layers so that each follows its inputs, and otherwise in module order:
// depth first through the inputs inside the unit.
func (graph *Graph) execOrder(unitIndex int) []int {
	unit := &graph.Units[unitIndex]
	order := make([]int, 0, unit.End-unit.First)
	done := make([]bool, unit.End-unit.First)
	var visit func(i int)
	visit = func(i int) {
		if i < unit.First || i >= unit.End || done[i-unit.First] {
			return
		}
		done[i-unit.First] = true
		for _, j := range graph.Layers[i].InputLayers {
			visit(j)
		}
		order = append(order, i)
	}
	for i := unit.First; i < unit.End; i++ {
		visit(i)
	}
	return order
}
