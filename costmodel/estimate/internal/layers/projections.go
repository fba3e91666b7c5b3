package layers

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Projection is a weight [Out, In] of a torch.nn.Linear (or of GPT-2's Conv1D, which has it transposed).
type Projection struct {
	Param  int    // index in the layer's Params
	Module string // full path
	Below  string // path below the layer's
	In     int64
	Out    int64
	// Head: it makes the logits. Output: the last one of attention or of a feed-forward network,
	// added to the residual stream. Up: a gated network's without activation.
	Head, Output, Up bool
}

// Framework names of projections that share their dimensions with others.
var (
	attentionOutputs = []string{"o_proj", "out_proj", "wo", "proj", "projection_layer", "dense", "c_proj", "o"}
	squareMLPOutputs = []string{"down_proj", "w2", "fc2", "wo", "c_proj", "dense_4h_to_h", "dense"}
	gatedUps         = []string{"up_proj", "w3", "wi_1"}
)

// Projections are the linear layers among the parameters of layer i.
func Projections(graph *modelgraph.Graph, i int) []Projection {
	layer := &graph.Layers[i]
	if !hasProjections(layer.Op) {
		return nil
	}
	out := make([]Projection, 0, len(layer.Params))
	for j := range layer.Params {
		tensor := &layer.Params[j]
		below, weight := strings.CutSuffix(tensor.Name, "weight")
		below, dotted := strings.CutSuffix(below, ".")
		if !weight || !dotted && below != "" || len(tensor.Shape) != 2 || !tensor.DType.Float() || otherModule(layer.Op, below) {
			continue
		}
		_, head := layer.Op.(modelgraph.Head)
		projection := Projection{Param: j, Module: modelgraph.FullName(layer.Name, below), Below: below, In: tensor.Shape[1], Out: tensor.Shape[0], Head: head}
		if graph.Family == "gpt2" && !head {
			projection.In, projection.Out = projection.Out, projection.In
		}
		projection.role(layer.Op)
		out = append(out, projection)
	}
	return out
}

// role is the projection's place in its op.
func (projection *Projection) role(op modelgraph.Op) {
	leaf := projection.Below[strings.LastIndexByte(projection.Below, '.')+1:]
	switch op := op.(type) {
	case modelgraph.Attention:
		projection.Output = slices.Contains(attentionOutputs, leaf)
	case modelgraph.MLP:
		projection.Output = projection.In == op.Hidden
		if op.Dim == op.Hidden {
			projection.Output = slices.Contains(squareMLPOutputs, leaf)
		}
		projection.Up = slices.Contains(gatedUps, leaf)
	}
}

func hasProjections(op modelgraph.Op) bool {
	switch op.(type) {
	case modelgraph.Attention, modelgraph.MLP, modelgraph.MoE, modelgraph.Linear, modelgraph.StateSpace, modelgraph.Head:
		return true
	}
	return false
}

// otherModule reports matrices that are not a Linear's: routers hold a bare parameter
// (modeling_mixtral.py, MixtralTopKRouter), T5's position bias is an embedding.
func otherModule(op modelgraph.Op, below string) bool {
	if _, ok := op.(modelgraph.MoE); ok && (below == "gate" || below == "router") {
		return true
	}
	return strings.HasSuffix(below, "relative_attention_bias")
}
