package benchfile

import (
	"fmt"

	"github.com/devmap-dev/devmap/modelgraph"
)

// names of Piper's configurations.
const (
	vanilla   = "vanilla"
	recompute = "activation recomp"
)

// graph is the workload as a model with declared costs: each node as it runs
// without tensor parallelism and without recomputation, times taken for
// seconds. A file gives forward and backward together; recomputation adds a
// forward pass, which tells the two apart, and where it is not given forward
// is taken for a third.
func (p *Piper) graph(file string) (*modelgraph.Graph, error) {
	nodes := make([]modelgraph.Layer, len(p.Nodes))
	output := make([]float64, len(p.Nodes))
	edges := make([][2]int, len(p.Edges))
	for i, e := range p.Edges {
		edges[i] = [2]int{e.From, e.To}
		output[e.From] = max(output[e.From], e.Bytes)
	}
	guessed := 0
	for i := range p.Nodes {
		n := &p.Nodes[i]
		plain, again := n.config(vanilla), n.config(recompute)
		if plain == nil {
			return nil, &modelgraph.SyntaxError{
				File: file, Place: fmt.Sprintf("nodes[%d].TMPCs", i),
				Msg: fmt.Sprintf("%q has no configuration %q without tensor parallelism, [\"1\"]", n.Name, vanilla),
			}
		}
		forward := plain.Time / 3
		if again != nil && again.Time >= plain.Time && again.Time <= 2*plain.Time {
			forward = again.Time - plain.Time
		} else {
			guessed++
		}
		d := modelgraph.NotDeclared()
		d.ParamsBytes, d.ActivationBytes, d.OutputBytes = bytes(plain.Parameters), bytes(plain.PerMicroBatch), bytes(output[i])
		d.ForwardSeconds, d.BackwardSeconds = forward, plain.Time-forward
		nodes[i] = modelgraph.Layer{Name: n.Name, Declared: &d}
	}
	g, err := layers(file, nodes, edges)
	if err == nil && guessed > 0 {
		g.Warnings = append(g.Warnings, fmt.Sprintf("%s: the forward time of %d nodes is taken for a third of the whole, which is all that the file gives", file, guessed))
	}
	return g, err
}

// config finds a configuration without tensor parallelism.
func (n *piperLayer) config(id string) *piperWay {
	for i := range n.Configs[1] {
		if n.Configs[1][i].ID == id {
			return &n.Configs[1][i]
		}
	}
	return nil
}
