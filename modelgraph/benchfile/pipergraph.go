package benchfile

import (
	"fmt"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Names of Piper's configurations.
const (
	vanilla   = "vanilla"
	recompute = "activation recomp"
)

// graph returns the workload as a model with declared costs. Each node runs without tensor
// parallelism and without recomputation. Times count as seconds. A file gives the sum of forward
// and backward. The sum with recomputation has one more forward: the difference is the time of a
// forward. If that sum is missing, a third counts as forward.
func (file *Piper) graph(name string) (*modelgraph.Graph, error) {
	nodes := make([]modelgraph.Layer, len(file.Nodes))
	output := make([]float64, len(file.Nodes))
	edges := make([][2]int, len(file.Edges))
	for i, edge := range file.Edges {
		edges[i] = [2]int{edge.From, edge.To}
		output[edge.From] = max(output[edge.From], edge.Bytes)
	}
	guessed := 0
	for i := range file.Nodes {
		node := &file.Nodes[i]
		plain, again := node.config(vanilla), node.config(recompute)
		if plain == nil {
			return nil, &modelgraph.SyntaxError{
				File: name, Place: fmt.Sprintf("nodes[%d].TMPCs", i),
				Msg: fmt.Sprintf("%q has no configuration %q without tensor parallelism, [\"1\"]", node.Name, vanilla),
			}
		}
		forward := plain.Time / 3
		if again != nil && again.Time >= plain.Time && again.Time <= 2*plain.Time {
			forward = again.Time - plain.Time
		} else {
			guessed++
		}
		declared := modelgraph.NotDeclared()
		declared.ParamsBytes, declared.ActivationBytes, declared.OutputBytes = wholeBytes(plain.Parameters), wholeBytes(plain.PerMicroBatch), wholeBytes(output[i])
		declared.ForwardSeconds, declared.BackwardSeconds = forward, plain.Time-forward
		nodes[i] = modelgraph.Layer{Name: node.Name, Declared: &declared}
	}
	graph, err := layers(name, nodes, edges)
	if err == nil && guessed > 0 {
		graph.Warnings = append(graph.Warnings, fmt.Sprintf("%s: the forward time of %d nodes is taken for a third of the whole, which is all that the file gives", name, guessed))
	}
	return graph, err
}

// config finds a configuration without tensor parallelism.
func (node *piperLayer) config(id string) *piperWay {
	for i := range node.Configs[1] {
		if node.Configs[1][i].ID == id {
			return &node.Configs[1][i]
		}
	}
	return nil
}
