package layers

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// shapes is one micro-batch as every layer sees it.
func (model *Model) shapes() {
	alone, inputs, persist := headAlone(model.Graph), inputs(model.Graph), persisting(model.Graph)
	var reached []bool
	if model.Frozen {
		reached = model.inputGrads()
	}
	for i := range model.Layers {
		shape := model.shape(i)
		shape.HeadAlone, shape.Inputs, shape.Persists = alone[i], i == inputs, persist[i]
		if _, head := model.Layers[i].Op.(modelgraph.Head); head {
			shape.StackOutput = returnedStack(model, persist)
		}
		shape.Parallel = model.parallel(i)
		shape.InputShared = model.sharesInput(i)
		shape.StreamInput = readsStream(model, i) && (!shape.Recompute || !model.entersUnit(i))
		in := model.Layers[i].InputLayers
		shape.Given = len(in) == 0
		shape.SameResidual = len(in) > 1 && in[0] == in[1]
		shape.Scatter = shape.Inputs && shape.Images
		shape.Checkpoint = shape.Recompute && !shape.RotaryCopies && model.entersUnit(i)
		if model.Rules.Modules == ops.Torchtitan {
			model.titan(i, &shape)
		}
		if model.Frozen {
			shape.InputGrad = reached[i]
			adapted(model, i, &shape)
		}
		model.Layers[i].Shape = shape
	}
}

// adapted is what adapters change for a layer.
func adapted(model *Model, i int, shape *ops.Shape) {
	shape.Frozen = true
	shape.Adapters16, shape.AdapterCasts = model.AdapterCompute() == 2, model.Rules.AutocastAdapters
	shape.FusedAdapters = model.Rules.FusedAdapters && model.Layers[i].Stream.Kind == modelgraph.Text
	shape.AdapterDropout = model.Workload.LoRADropout
	shape.HeadCasts = model.Rules.HeadAsStored && ops.MixedPrecision(model.Workload.Precision) && !slices.ContainsFunc(model.Layers[i].Params, func(tensor modelgraph.Tensor) bool { return tensor.Owner != "" })
	shape.InputSaved = shape.InputSaved || shape.Recompute && model.entersUnit(i)
}

// titan sets differences of torchtitan's modules. A block's checkpoint keeps its input. A tied
// head's gradient is gone when the table's comes, or separate from it: with tensor parallelism each
// has a parameter.
func (model *Model) titan(i int, shape *ops.Shape) {
	shape.InputSaved = shape.Recompute && model.entersUnit(i)
	if _, table := model.Layers[i].Op.(modelgraph.Embedding); table && (shape.Loss == value.LossChunked || model.Workload.TP.Count() > 1) {
		shape.NewGrads, shape.SecondGrads = shape.NewGrads+shape.SecondGrads, 0
	}
}

// shape is what follows from the layer and the workload alone.
func (model *Model) shape(i int) ops.Shape {
	layer, workload := &model.Layers[i], &model.Workload
	tokens, length := tokensOf(workload, layer.Stream)
	batch := batchOf(workload)
	weights := int64(0)
	for _, tensor := range layer.Owned() {
		weights += tensor.Numel
	}
	shape := ops.Shape{
		Tokens: tokens, Length: length, Batch: MicroBatch(workload),
		Cache: length + workload.NewTokens, Logits: labelled(workload, &batch, tokens),
		Train: model.Train, Precision: model.Rules.Compute, RotaryCopies: model.Rules.RotaryCopies,
		NewGrads: layer.Grads.First, SecondGrads: layer.Grads.Second, Weights: weights,
		Attention: workload.Attention, Kernels: workload.Kernels, Loss: model.loss(), Recompute: model.again[model.Layers[i].UnitIndex],
		Adapters: layer.Whole.Adapters, Quantize: workload.Quantize,
		OneKernel:    workload.Liger || model.Rules.Compiled,
		Compiled:     model.Rules.Compiled,
		InParts:      model.Rules.InParts,
		LinearInputs: model.Rules.LinearInputs, Shared: workload.TP.Count() > 1,
		Images: workload.Images > 0, InputSaved: model.inputSaved(i),
		Megatron: model.Train && model.Rules.Megatron, CoreAttention: workload.Recompute == value.RecomputeSelective,
		Modules: model.Rules.Modules,
	}
	shape.Float8 = float8Of(model, i)
	switch {
	case workload.NewTokens > 0 && model.Train: // labels are the tokens that were generated
		shape.Cache, shape.Logits = length, shape.Batch*(workload.NewTokens+1)
	case workload.NewTokens > 0:
		shape.Logits = shape.Batch // generation projects the last position alone
	}
	if layer.Stream.Kind == modelgraph.Text {
		shape.Batch = batch.Rows
		fillRows(&shape, workload, &batch)
	}
	if model.Rules.Megatron || titanStages(model) {
		cutTokens(&shape, layer.Op, workload)
	}
	if in := layer.InputLayers; len(in) > 0 {
		shape.Encoder, _ = tokensOf(workload, model.Layers[in[len(in)-1]].Stream)
	}
	return shape
}

// float8Of says how a layer's products have 8 bits.
func float8Of(model *Model, i int) ops.Float8 {
	workload := &model.Workload
	switch {
	case workload.Float8 == "" || !model.Train || !model.Rules.Megatron && !ops.Float8s(model.Layers[i].Op):
		return ops.Float8{}
	case model.Rules.Megatron:
		return ops.Float8{On: true}
	}
	return ops.Float8{
		On: true, Gathered: workload.Float8 == value.TensorwiseGathered && model.Rules.Cut, Pads: trainer.Of(workload.Preset).Path.Float8Pads,
		First: i == model.firstLinear(),
	}
}

// firstLinear is the layer with the model's first linear layer, or -1.
func (model *Model) firstLinear() int {
	return slices.IndexFunc(model.Graph.Layers, func(layer modelgraph.Layer) bool { return hasProjections(layer.Op) })
}

// float8 reports a weight of torchao's 8-bit products: blocks' linear layers except the model's
// first.
func (part *Part) float8(j int) bool {
	model := part.model
	if model.Workload.Float8 == "" || part.linear[j] == nil || !ops.Float8s(part.Op) {
		return false
	}
	first := slices.IndexFunc(part.linear, func(linear *Projection) bool { return linear != nil })
	return j != first || part.Name != model.Graph.Layers[model.firstLinear()].Name
}

// Gathered8 reports a weight that FSDP2 gathers in 8 bits.
func (part *Part) Gathered8(j int) bool {
	return part.model.Workload.Float8 == value.TensorwiseGathered && part.model.Rules.Cut && part.float8(j)
}

// untrained reports a weight that the optimizer misses. Accelerate wraps weights in new parameters
// after making the optimizer, and replaces the optimizer's only under FSDP2 (accelerate 1.15,
// accelerator.py, prepare and _prepare_fsdp2; torchao 0.18, float8_linear.py, from_float).
func (part *Part) untrained(j int) bool {
	return part.model.Workload.Float8 == value.TensorwiseGathered && !part.model.Rules.Cut && part.float8(j)
}

// loss is how the language model's loss is computed: Liger's own unless another is asked for.
func (model *Model) loss() string {
	if model.Workload.Liger && model.Workload.Loss == "" {
		return value.LossFused
	}
	return model.Workload.Loss
}

// inputSaved reports that the layer before keeps this layer's input: a norm counts its output, and
// a projection its activation's result.
func (model *Model) inputSaved(i int) bool {
	in := model.Layers[i].InputLayers
	if len(in) == 0 {
		return false
	}
	// Frozen linear layers keep no input, except LLM.int8()'s.
	reads := !model.Frozen || model.Workload.Quantize == value.Int8 || model.Rules.LinearInputs
	switch op := model.Layers[in[0]].Op.(type) {
	case modelgraph.Norm:
		_, norm := model.Layers[i].Op.(modelgraph.Norm)
		tower := norm && model.Layers[i].Stream.Kind != modelgraph.Text // which may add positions between (modeling_mllama.py)
		return reads && !op.Post && !ops.MixedPrecision(model.Rules.Compute) && !tower
	case modelgraph.Linear:
		return op.Activation != "" && (reads || ops.KeepsOutput(op.Activation))
	}
	return false
}

// readsStream reports attention or a feed-forward that no norm precedes
// (modeling_olmo2.py, Olmo2DecoderLayer). Autocast keeps casts in its place.
func readsStream(model *Model, i int) bool {
	layer := &model.Layers[i]
	switch layer.Op.(type) {
	case modelgraph.Attention, modelgraph.MLP, modelgraph.MoE:
	default:
		return false
	}
	if len(layer.InputLayers) == 0 || ops.MixedPrecision(model.Rules.Compute) {
		return false
	}
	from := &model.Layers[layer.InputLayers[0]]
	norm, ok := from.Op.(modelgraph.Norm)
	_, embedded := from.Op.(modelgraph.Embedding)
	return ok && norm.Post || embedded
}

// sharesInput reports a norm with an input that an earlier layer of the unit reads, too
// (modeling_gpt_neox.py, GPTNeoXLayer), or the unit's checkpoint keeps.
func (model *Model) sharesInput(i int) bool {
	in := model.Layers[i].InputLayers
	if _, norm := model.Layers[i].Op.(modelgraph.Norm); !norm || len(in) == 0 {
		return false
	}
	if model.again[model.Layers[i].UnitIndex] && model.entersUnit(i) && !tileBlock(model.Graph, model.Layers[i].UnitIndex) {
		return true
	}
	for j := model.Graph.Units[model.Layers[i].UnitIndex].First; j < i; j++ {
		_, norm := model.Layers[j].Op.(modelgraph.Norm)
		if from := model.Layers[j].InputLayers; norm && len(from) > 0 && from[0] == in[0] {
			return true
		}
	}
	return false
}

// parallel reports attention next to a feed-forward that reads the same input.
func (model *Model) parallel(i int) bool {
	in := model.Layers[i].InputLayers
	if _, attends := model.Layers[i].Op.(modelgraph.Attention); !attends || len(in) == 0 {
		return false
	}
	for j := i + 1; j < model.Graph.Units[model.Layers[i].UnitIndex].End; j++ {
		_, forward := model.Layers[j].Op.(modelgraph.MLP)
		if from := model.Layers[j].InputLayers; forward && len(from) > 0 && from[0] == in[0] {
			return true
		}
	}
	return false
}

// entersUnit reports a layer that reads what enters a unit of several layers, which a checkpoint keeps.
func (model *Model) entersUnit(i int) bool {
	layer := &model.Layers[i]
	unit := &model.Graph.Units[layer.UnitIndex]
	in := layer.InputLayers
	return len(in) > 0 && len(unit.Exec) > 1 && (in[0] < unit.First || in[0] >= unit.End)
}

// headAlone marks the norms read only by a head in another unit, and those heads.
func headAlone(graph *modelgraph.Graph) []bool {
	out := make([]bool, len(graph.Layers))
	readers := make([]int, len(graph.Layers))
	for i := range graph.Layers {
		for _, j := range graph.Layers[i].InputLayers {
			readers[j]++
		}
	}
	for i := range graph.Layers {
		in := graph.Layers[i].InputLayers
		if head, ok := graph.Layers[i].Op.(modelgraph.Head); !ok || head.Pooled || len(in) != 1 {
			continue
		}
		_, norm := graph.Layers[in[0]].Op.(modelgraph.Norm)
		if norm && readers[in[0]] == 1 && graph.Layers[in[0]].UnitIndex != graph.Layers[i].UnitIndex {
			out[i], out[in[0]] = true, true
		}
	}
	return out
}

// inputs is the layer that embeds a decoder's tokens; -1 unless all attention to text is causal.
func inputs(graph *modelgraph.Graph) int {
	decoder := false
	for i := range graph.Layers {
		if _, mixes := graph.Layers[i].Op.(modelgraph.StateSpace); mixes {
			decoder = true
		}
		attention, ok := graph.Layers[i].Op.(modelgraph.Attention)
		if !ok || graph.Layers[i].Stream.Kind != modelgraph.Text {
			continue
		}
		if attention.Bidirectional || attention.Cross {
			return -1
		}
		decoder = true
	}
	if !decoder {
		return -1
	}
	return embedding(graph)
}

// persisting marks what a decoder's forward keeps while it reads another stack: that stack's
// output, and its own embeddings (modeling_t5.py, T5Stack.forward, inputs_embeds; modeling_bart.py,
// BartDecoder.forward). A model of images alone keeps its embeddings, which the first block reads as
// its residual (modeling_vit.py, ViTModel.forward, embedding_output).
func persisting(graph *modelgraph.Graph) []bool {
	out, crosses := make([]bool, len(graph.Layers)), false
	if first := imageResidual(graph); first >= 0 {
		out[first] = true
	}
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		if attention, ok := layer.Op.(modelgraph.Attention); ok && attention.Cross && layer.Stream.Kind == modelgraph.Target && len(layer.InputLayers) > 0 {
			out[layer.InputLayers[len(layer.InputLayers)-1]], crosses = true, true
		}
	}
	for i := range graph.Layers {
		table, ok := graph.Layers[i].Op.(modelgraph.Embedding)
		out[i] = out[i] || ok && crosses && table.Index == modelgraph.TokenIndex && graph.Layers[i].Stream.Kind == modelgraph.Target
	}
	return out
}

// imageResidual is the residual of the first block of a model without text, or -1.
func imageResidual(graph *modelgraph.Graph) int {
	first := -1
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		switch layer.Op.(type) {
		case modelgraph.Attention, modelgraph.Linear:
		default:
			continue
		}
		if layer.Stream.Kind == modelgraph.Text || layer.Stream.Kind == modelgraph.Target {
			return -1
		}
		if first < 0 && len(layer.InputLayers) > 1 {
			first = layer.InputLayers[1]
		}
	}
	return first
}

// returnedStack is the size of the other stack's output, of the layers that persist.
func returnedStack(model *Model, persist []bool) (bytes int64) {
	for i, persists := range persist {
		norm, ok := model.Layers[i].Op.(modelgraph.Norm)
		if tokens, _ := tokensOf(&model.Workload, model.Layers[i].Stream); persists && ok {
			bytes += ops.StreamBytes(model.Rules.Compute) * norm.Dim * tokens
		}
	}
	return bytes
}
