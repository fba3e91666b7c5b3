package layers

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// copied is a graph with layers and parameters of its own.
func copied(graph *modelgraph.Graph) *modelgraph.Graph {
	out := *graph
	out.Layers = slices.Clone(graph.Layers)
	for i := range out.Layers {
		out.Layers[i].Params = slices.Clone(out.Layers[i].Params)
	}
	return &out
}

// narrowed is the graph of one of the GPUs that share matrices. It has its heads of attention, its
// features of feed-forward networks, its part of the vocabulary in embedding and head.
// ColwiseParallel splits projections into these by rows, RowwiseParallel those out of them by
// columns (torch 2.11, distributed/tensor/parallel/style.py). Norms are whole, as in torchtitan's
// Llama (torchtitan/models/llama3/infra/parallelize.py, apply_tp). Every side is a multiple of the
// degree, and no layer is [Uncut].
func narrowed(graph *modelgraph.Graph, degree int64) *modelgraph.Graph {
	out := copied(graph)
	for i := range out.Layers {
		layer := &out.Layers[i]
		columns := make(map[int]bool)
		for _, projection := range Projections(graph, i) {
			columns[projection.Param] = projection.Output
		}
		for j := range layer.Params {
			switch byColumns, matrix := columns[j]; {
			case byColumns:
				narrow(&layer.Params[j], 1, degree)
			case matrix:
				narrow(&layer.Params[j], 0, degree)
			default:
				if cutWithWeight(graph, i, j, columns) {
					narrow(&layer.Params[j], 0, degree)
				}
			}
		}
		layer.Op = narrowOp(layer.Op, degree)
	}
	return out
}

// cutWithWeight reports a parameter that is split with a projection's weight: the rows of an
// embedding, and the bias of a projection that is split by rows. Norms, and a bias added to a sum
// over the GPUs, are whole.
func cutWithWeight(graph *modelgraph.Graph, i, j int, columns map[int]bool) bool {
	layer := &graph.Layers[i]
	if _, table := layer.Op.(modelgraph.Embedding); table {
		return true
	}
	for _, projection := range Projections(graph, i) {
		if !columns[projection.Param] && layer.Params[j].Name == modelgraph.FullName(projection.Below, "bias") {
			return true
		}
	}
	return false
}

// narrow leaves a tensor its part along an axis.
func narrow(tensor *modelgraph.Tensor, axis int, degree int64) {
	shape := slices.Clone(tensor.Shape)
	shape[axis] = (shape[axis] + degree - 1) / degree
	local, err := modelgraph.NewTensor(tensor.Name, tensor.DType, shape...)
	if err != nil { // it is no larger than the tensor, which has a size
		panic(err)
	}
	local.Owner = tensor.Owner
	*tensor = local
}

func narrowOp(op modelgraph.Op, degree int64) modelgraph.Op {
	switch op := op.(type) {
	case modelgraph.Attention:
		op.Heads, op.KVHeads = op.Heads/degree, op.KVHeads/degree
		return op
	case modelgraph.MLP:
		op.Hidden /= degree
		return op
	case modelgraph.MoE:
		op.SharedHidden /= degree
		return op
	case modelgraph.Embedding:
		op.Vocab /= degree
		return op
	case modelgraph.Head:
		op.Vocab /= degree
		return op
	}
	return op
}

// Uncut names the kind of a layer without modelled tensor parallelism; empty if it is modelled. The
// plan is torchtitan's for Llama: separate linear layers for q, k, v and two halves of a gated
// network, in one stream of text.
func Uncut(graph *modelgraph.Graph, i int) string {
	layer := &graph.Layers[i]
	if layer.Stream.Kind != modelgraph.Text {
		return "part of a tower or of an encoder-decoder"
	}
	switch op := layer.Op.(type) {
	case modelgraph.Attention:
		return uncutAttention(&op)
	case modelgraph.MLP:
		if op.Fused || op.Transposed || op.LayerScale {
			return "a feed-forward network with one matrix for both factors"
		}
		return ""
	case modelgraph.Head:
		if op.Pooled {
			return "a classifier's head"
		}
		return ""
	case modelgraph.Norm, modelgraph.Embedding, modelgraph.Rotary:
		return ""
	}
	return "an operation of another kind"
}

// uncutAttention is [Uncut] of attention.
func uncutAttention(op *modelgraph.Attention) string {
	latent := op.KVRank > 0 || op.QRank > 0
	joined := op.Packed || op.Cross || op.Gated || op.SharedKV || op.IndexHeads > 0 || op.QKNormWhole
	switch {
	case op.Fused || op.Transposed:
		return "attention with one matrix for q, k and v"
	case latent || joined || op.ScoreBias != "" || op.LayerScale:
		return "attention of a form whose heads are not apart"
	}
	return ""
}
