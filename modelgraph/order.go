package modelgraph

import (
	"errors"

	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

// order refuses cycles and sorts each unit's layers by data flow.
func (g *Graph) order() error {
	forward := true
	for i := range g.Layers {
		for _, j := range g.Layers[i].inputs {
			if j == i {
				return &CycleError{Layers: []string{g.Layers[i].Name}}
			}
			forward = forward && j < i
		}
	}
	if !forward { // only then can a cycle exist
		if err := g.findCycle(); err != nil {
			return err
		}
	}
	for u := range g.Units {
		g.Units[u].Exec = g.execOrder(u)
	}
	return nil
}

func (g *Graph) findCycle() error {
	d := simple.NewDirectedGraph()
	for i := range g.Layers {
		d.AddNode(simple.Node(i))
	}
	for i := range g.Layers {
		for _, j := range g.Layers[i].inputs {
			d.SetEdge(d.NewEdge(simple.Node(j), simple.Node(i)))
		}
	}
	var cyclic topo.Unorderable
	if _, err := topo.Sort(d); !errors.As(err, &cyclic) {
		return err
	}
	// A strongly connected part may hold many circles: a shortest one through
	// its first layer is told, in the direction of the data.
	inside := make(map[int]bool)
	first := len(g.Layers)
	for _, n := range cyclic[0] {
		inside[int(n.ID())] = true
		first = min(first, int(n.ID()))
	}
	return &CycleError{Layers: g.circle(first, inside)}
}

// circle walks back over inputs, breadth first, until it is at a layer again.
func (g *Graph) circle(start int, inside map[int]bool) []string {
	feeds := map[int]int{} // a layer, and the one after it on the way back
	for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
		for _, j := range g.Layers[queue[0]].inputs {
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
	names := []string{g.Layers[start].Name}
	for i := feeds[start]; i != start; i = feeds[i] {
		names = append(names, g.Layers[i].Name)
	}
	return names
}

// execOrder sorts a unit's layers so that each follows its inputs, otherwise
// in module order: depth first through the inputs inside the unit.
func (g *Graph) execOrder(u int) []int {
	unit := &g.Units[u]
	order := make([]int, 0, unit.End-unit.First)
	done := make([]bool, unit.End-unit.First)
	var visit func(i int)
	visit = func(i int) {
		if i < unit.First || i >= unit.End || done[i-unit.First] {
			return
		}
		done[i-unit.First] = true
		for _, j := range g.Layers[i].inputs {
			visit(j)
		}
		order = append(order, i)
	}
	for i := unit.First; i < unit.End; i++ {
		visit(i)
	}
	return order
}
