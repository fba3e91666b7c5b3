// Package reserve is what PyTorch's caching allocator reserves in the first
// steps of a training: a model's layers and a strategy as requests to it.
package reserve

import (
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/replay"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Decoder is a model with followed tensors.
type Decoder struct {
	replay.Model
	// Params are the base's, tied ones once, Trained those with gradients, both in module order.
	Params, Trained []*replay.Weight
	// Owned are a layer's, with its adapters.
	Owned map[int][]*replay.Weight

	layers *layers.Model
	// wider: some layers are followed in part ([FollowWider]).
	wider   bool
	rotary  int  // the layer of cosines and sines
	up      bool // segments lie above those before them
	weights map[string]*replay.Weight
}

// Follow returns the model's tensors if every request can be followed, and reports whether. It
// follows decoders of normalisation, attention through a flash kernel and a feed-forward network,
// in this order, without autocast, with a loss of all logits.
func Follow(model *layers.Model) (*Decoder, bool) {
	out, ok := FollowWider(model)
	return out, ok && !out.wider
}

// FollowWider follows other forms too, for the allocator's rounding of blocks: norms after a layer,
// encoders, a forward alone, and layers by their linear layers.
func FollowWider(model *layers.Model) (*Decoder, bool) {
	out := &Decoder{layers: model, weights: make(map[string]*replay.Weight), Owned: make(map[int][]*replay.Weight)}
	if !inOneType(model) {
		return nil, false
	}
	out.weigh()
	order := make([]int, 0, len(model.Layers))
	for _, unit := range layers.RunOrder(model.Graph) {
		order = append(order, model.Unit(unit)...)
	}
	if !out.body(order) {
		return nil, false
	}
	shape := &model.Layers[out.Embedding.Index].Shape
	if model.Train && shape.Logits != shape.Tokens || shape.MaskGiven || shape.Unpads || shape.Documents > shape.Batch && !shape.Masked {
		return nil, false // tensors that are not followed
	}
	if shape.Positions {
		out.Rotary *= shape.Batch
	}
	out.Tokens, out.Batch, out.Length, out.Logits = shape.Tokens, shape.Batch, shape.Length, shape.Logits
	out.Element = ops.ComputeBytes(model.Rules.Compute)
	out.Adapter = model.AdapterCompute()
	out.Recompute = model.Recomputes
	out.KeepsInputs, out.InputFirst = model.Rules.LinearInputs, model.Rules.LinearInputs
	return out, true
}

// inOneType reports a step in one type, with all logits in training, of Transformers' and PEFT's
// layers, whose blocks are all recomputed or none is.
func inOneType(model *layers.Model) bool {
	loss, fused := model.Workload.Loss, model.Frozen && model.Rules.FusedAdapters
	return !ops.MixedPrecision(model.Rules.Compute) && model.Workload.Quantize == "" && !model.Workload.ListsRecomputed() && (loss == "" || loss == "eager") && !fused
}

// weigh lists the parameters.
func (out *Decoder) weigh() {
	for i := range out.layers.Layers {
		layer := &out.layers.Layers[i]
		for j := range layer.Params {
			tensor := &layer.Params[j]
			if tensor.Owner != "" {
				continue
			}
			weight := &replay.Weight{Numel: tensor.Numel, Trained: !out.layers.Frozen && layer.Runs}
			out.weights[modelgraph.FullName(layer.Name, tensor.Name)] = weight
			out.Params = append(out.Params, weight)
			out.Owned[i] = append(out.Owned[i], weight)
			if weight.Trained {
				out.Trained = append(out.Trained, weight)
			}
		}
	}
}

// param is a layer's parameter by its name, nil if it has none of it.
func (out *Decoder) param(layer *layers.Layer, name string) *replay.Weight {
	for j := range layer.Params {
		if tensor := &layer.Params[j]; tensor.Name == name {
			if tensor.Owner != "" {
				return out.weights[tensor.Owner]
			}
			return out.weights[modelgraph.FullName(layer.Name, name)]
		}
	}
	return nil
}

func (out *Decoder) norm(i int, op modelgraph.Norm) (*replay.Norm, bool) {
	layer := &out.layers.Layers[i]
	norm := &replay.Norm{Width: op.Dim, Rows: 1, Parts: ops.ReduceBuffer(layer.Shape.Tokens, op.Dim), Weight: out.param(layer, "weight"), Bias: out.param(layer, "bias"), Fused: op.Style == modelgraph.LayerNorm, Gemma: op.Style == modelgraph.GemmaRMSNorm || op.FP32 && op.Style == ""}
	return norm, norm.Weight != nil
}

func (out *Decoder) head(i int, op modelgraph.Head) bool {
	linears := out.linears(i)
	if op.Pooled || op.FP32 || len(linears) != 1 || linears[0].Rank > 0 {
		return false
	}
	out.wider = out.wider || op.Scaled || op.OwnType || linears[0].Bias != nil
	out.Head.Vocab, out.Head.Linear, out.Head.OwnType, out.HeadIndex = op.Vocab, linears[0], op.OwnType, i
	switch {
	case op.SoftCap: // a quotient, tanh and a product (modeling_gemma2.py, Gemma2ForCausalLM.forward)
		out.Head.Steps = []bool{false, true, false}
	case op.Scaled: // modeling_cohere2.py
		out.Head.Steps = []bool{false}
	}
	return true
}

// linears are the projections of a layer in its order of parameters.
func (out *Decoder) linears(i int) []*replay.Linear {
	layer := &out.layers.Layers[i]
	projections := layers.Projections(out.layers.Graph, i)
	var all []*replay.Linear
	for k := range projections {
		projection := &projections[k]
		linear := &replay.Linear{Parts: ops.ReduceBuffer(layer.Shape.Tokens, projection.Out), Module: projection.Below, In: projection.In, Out: projection.Out, Weight: out.param(layer, layer.Params[projection.Param].Name), Bias: out.param(layer, modelgraph.FullName(projection.Below, "bias"))}
		if adapter := adapterOf(layer.Whole.Adapters, projection.Below); adapter != nil {
			linear.Rank = adapter.Rank
			linear.Down = &replay.Weight{Numel: adapter.Rank * adapter.In, Trained: true}
			linear.Up = &replay.Weight{Numel: adapter.Rank * adapter.Out, Trained: true}
			out.Trained = append(out.Trained, linear.Down, linear.Up)
			out.Owned[i] = append(out.Owned[i], linear.Down, linear.Up)
		}
		all = append(all, linear)
	}
	return all
}

func adapterOf(adapters []ops.Adapter, below string) *ops.Adapter {
	for k := range adapters {
		if adapters[k].Module == below {
			return &adapters[k]
		}
	}
	return nil
}
