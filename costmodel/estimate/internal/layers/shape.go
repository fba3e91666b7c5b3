package layers

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// shapes is one micro-batch as every layer sees it.
func (model *Model) shapes() {
	alone, inputs := headAlone(model.Graph), inputs(model.Graph)
	var reached []bool
	if model.Frozen {
		reached = model.inputGrads()
	}
	for i := range model.Layers {
		shape := model.shape(i)
		shape.HeadAlone, shape.Inputs = alone[i], i == inputs
		shape.Scatter = shape.Inputs && shape.Images
		if model.Frozen {
			shape.Frozen, shape.InputGrad = true, reached[i]
			shape.Adapters16, shape.AdapterCasts = model.AdapterCompute() == 2, model.Rules.AutocastAdapters
			shape.InputSaved = shape.InputSaved || shape.Recompute && model.entersUnit(i)
		}
		model.Layers[i].Shape = shape
	}
}

// shape is what follows from the layer and the workload alone.
func (model *Model) shape(i int) ops.Shape {
	layer, workload := &model.Layers[i], &model.Workload
	tokens, length := tokensOf(workload, layer.Stream)
	weights := int64(0)
	for _, tensor := range layer.Owned() {
		weights += tensor.Numel
	}
	shape := ops.Shape{
		Tokens: tokens, Length: length, Batch: MicroBatch(workload),
		Cache: length + workload.NewTokens, Logits: tokens,
		Train: model.Train, Precision: model.Rules.Compute, RotaryCopies: model.Rules.RotaryCopies,
		NewGrads: layer.Grads.First, SecondGrads: layer.Grads.Second, Weights: weights,
		Attention: workload.Attention, Loss: model.loss(), Recompute: model.Recomputes,
		Adapters: layer.Whole.Adapters, Quantize: workload.Quantize,
		OneKernel:    workload.Liger || model.Rules.Compiled,
		Compiled:     model.Rules.Compiled,
		InParts:      model.Rules.InParts,
		LinearInputs: model.Rules.LinearInputs, Shared: workload.TP.Count() > 1,
		Images: workload.Images > 0, InputSaved: model.inputSaved(i),
	}
	if workload.NewTokens > 0 {
		shape.Logits = shape.Batch // generation projects the last position alone
	}
	if in := layer.InputLayers; len(in) > 0 {
		shape.Encoder, _ = tokensOf(workload, model.Layers[in[len(in)-1]].Stream)
	}
	return shape
}

// loss is how the language model's loss is computed: Liger's own unless another is
// asked for.
func (model *Model) loss() string {
	if model.Workload.Liger && model.Workload.Loss == "" {
		return value.LossFused
	}
	return model.Workload.Loss
}

// inputSaved reports that what a layer reads is kept by the layer that made it:
// a norm counts its output, and a projection what its activation makes.
func (model *Model) inputSaved(i int) bool {
	in := model.Layers[i].InputLayers
	if len(in) == 0 {
		return false
	}
	// Frozen linear layers keep no input, but those of LLM.int8().
	reads := !model.Frozen || model.Workload.Quantize == value.Int8 || model.Rules.LinearInputs
	switch op := model.Layers[in[0]].Op.(type) {
	case modelgraph.Norm:
		return reads && !op.Post && !ops.MixedPrecision(model.Rules.Compute)
	case modelgraph.Linear:
		return op.Activation != "" && (reads || ops.KeepsOutput(op.Activation))
	}
	return false
}

// entersUnit reports a layer that reads what enters a unit of several layers,
// which a checkpoint keeps.
func (model *Model) entersUnit(i int) bool {
	layer := &model.Layers[i]
	unit := &model.Graph.Units[layer.UnitIndex]
	in := layer.InputLayers
	return len(in) > 0 && len(unit.Exec) > 1 && (in[0] < unit.First || in[0] >= unit.End)
}

// headAlone marks the norms that only a head in another unit reads, and those
// heads.
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

// inputs is the layer that embeds the tokens of a decoder, one all of whose
// attention to text looks back, or -1.
func inputs(graph *modelgraph.Graph) int {
	decoder := false
	for i := range graph.Layers {
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

// tokensOf is the number of tokens of a stream in one micro-batch, and the
// length of one of its sequences.
func tokensOf(workload *costmodel.Workload, stream modelgraph.Stream) (tokens, length int64) {
	sequences := MicroBatch(workload)
	switch stream.Kind {
	case modelgraph.Target:
		return sequences * workload.TargetSeq, workload.TargetSeq
	case modelgraph.Fixed:
		return sequences * stream.Tokens, stream.Tokens
	case modelgraph.Image:
		each := ImageTokens(stream, workload.ImageSize)
		return sequences * workload.Images * each, each
	case modelgraph.Text:
	}
	return sequences * workload.Seq, workload.Seq
}

// MicroBatch is the number of sequences that run at once.
func MicroBatch(workload *costmodel.Workload) int64 {
	return workload.Batch / max(1, workload.MicroBatches)
}

// ImageTokens is the number of tokens that a square image gives; size is its
// side in pixels, 0 the size of the stream.
func ImageTokens(stream modelgraph.Stream, size int64) int64 {
	if size == 0 || stream.Side == 0 {
		return stream.Tokens
	}
	unit := max(1, stream.Multiple)
	side := max(1, (size+unit/2)/unit) * unit / stream.Side
	return side * side
}
