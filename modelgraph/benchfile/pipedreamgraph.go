package benchfile

import "github.com/devmap-dev/devmap/modelgraph"

// Graph is the profile as a model with declared costs: a layer a node. What a
// node puts out is also what it keeps for the backward pass.
func (g *PipeDream) Graph(file string) (*modelgraph.Graph, error) {
	nodes := make([]modelgraph.Layer, len(g.Nodes))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		d := modelgraph.NotDeclared()
		d.ParamsBytes, d.ActivationBytes, d.OutputBytes = bytes(n.Parameters), bytes(n.Activation), bytes(n.Activation)
		d.ForwardSeconds, d.BackwardSeconds = n.Forward/1000, n.Backward/1000
		nodes[i] = modelgraph.Layer{Name: n.ID, Declared: &d}
	}
	return layers(file, nodes, g.Edges)
}
