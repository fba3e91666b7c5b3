package modelgraph

import (
	"fmt"
	"slices"
	"strings"
)

// activations are the names that an operation may have: those of Transformers (activations.py:
// ACT2CLS) and functions of torch.nn.functional.
const activations = "celu elu gelu gelu_10 gelu_accurate gelu_fast gelu_new gelu_python gelu_pytorch_tanh hardsigmoid hardswish hardtanh laplace " +
	"leaky_relu linear logsigmoid mish prelu quick_gelu relu relu2 relu6 selu sigmoid silu softplus softsign sqrtsoftplus swish tanh xielu"

// doubts adds warnings for likely slips in a file that was written by hand, which no check refuses.
func doubts(graph *Graph) {
	doubt := func(format string, args ...any) {
		if said := fmt.Sprintf(format, args...); !slices.Contains(graph.Warnings, said) {
			graph.Warnings = append(graph.Warnings, said)
		}
	}
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		var name string
		switch op := layer.Op.(type) {
		case MLP:
			name = op.Activation
		case MoE:
			name = op.Activation
		case Conv:
			name = op.Activation
		case Linear:
			name = op.Activation
			if len(layer.Params) > 0 && graph.Taken.Batch == 0 && op.In != op.Out && slices.Equal(layer.Params[0].Shape, []int64{op.In, op.Out}) {
				doubt("%q: the weight is [%d, %d] with in %d and out %d, and torch.nn.Linear's is [out, in]: results have the wrong size if they were exchanged", layer.Name, op.In, op.Out, op.In, op.Out)
			}
		}
		if name != "" && !slices.Contains(strings.Fields(activations), name) {
			doubt("%q: activation %q is not known and counts as one kernel that keeps its input (docs/formats/operations.md has the names)", layer.Name, name)
		}
	}
}
