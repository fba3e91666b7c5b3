package modelgraph

import (
	"errors"
	"slices"

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
		g.Units[u].exec = g.execOrder(u)
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
	names := make([]string, 0, len(cyclic[0]))
	for _, n := range cyclic[0] {
		names = append(names, g.Layers[n.ID()].Name)
	}
	slices.Sort(names)
	return &CycleError{Layers: names}
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
