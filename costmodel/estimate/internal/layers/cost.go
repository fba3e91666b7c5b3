package layers

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// cost sets the cost of the layer's op, or its declared cost.
func (layer *Layer) cost() {
	cost := ops.Of(layer.Op, &layer.Shape)
	if layer.Declared != nil {
		declared(&cost, layer.Declared, &layer.Shape)
	}
	if !cost.Known && len(layer.Params) > 0 {
		cost.Memory.Grads = layer.Shape.NewGrads
	}
	cost.Memory.Layer = layer.Name
	layer.Cost = layer.repeated(cost)
}

// Times is how often the layer runs in one forward.
func (layer *Layer) Times() int64 { return max(1, layer.Repeat) }

// repeated is a cost times the layer's runs. Saved and cached tensors stay until their run's
// backward; the output is the last run's. If the engine sums a parameter's gradients, the last
// run's wait for earlier runs' (torch 2.11, csrc/autograd/input_buffer.cpp, accumulate). A run's
// saved tensors are gone by then.
func (layer *Layer) repeated(cost ops.Cost) ops.Cost {
	more := layer.Times() - 1
	if more == 0 {
		return cost
	}
	step := &cost.Memory
	once := step.Saved
	step.Forward += more * (step.Saved + step.KV)
	step.Saved += more * (once - cost.Casts) // autocast keeps one copy of each weight
	step.KV += more * step.KV
	step.CacheGrowth += more * step.CacheGrowth
	if again := step.Backward + layer.Shape.NewGrads - once; again > step.Backward && layer.Shape.Train {
		step.Backward, step.BackwardGrads = again, step.BackwardGrads+layer.Shape.NewGrads
	}
	cost.FLOPs += float64(more) * cost.FLOPs
	return cost
}

// declared lays the figures of the model file over the op's.
func declared(cost *ops.Cost, figures *modelgraph.Declared, shape *ops.Shape) {
	step := &cost.Memory
	if figures.ActivationBytes >= 0 || figures.WorkspaceBytes >= 0 {
		growth := &figures.Growth
		activations := max(0, figures.ActivationBytes) + grown(growth.ActivationBytes.Sequence, growth.ActivationBytes.Token, growth.ActivationBytes.Pair, shape)
		work := max(0, figures.WorkspaceBytes) + grown(growth.WorkspaceBytes.Sequence, growth.WorkspaceBytes.Token, growth.WorkspaceBytes.Pair, shape)
		cost.Known = true
		step.Forward = activations + work
		if shape.Train {
			step.Saved = activations
			step.Backward, step.BackwardGrads = work+shape.NewGrads, shape.NewGrads
			step.AccumPeak = work + shape.NewGrads
		}
	}
	if figures.ParamsBytes >= 0 {
		cost.Known = true
	}
	if shape.Train {
		step.Grads = shape.NewGrads
		if step.Backward < shape.NewGrads {
			step.Backward, step.BackwardGrads = shape.NewGrads, shape.NewGrads
			step.AccumPeak = shape.NewGrads
		}
	}
	if figures.OutputBytes >= 0 {
		growth := figures.Growth.OutputBytes
		cost.Output = figures.OutputBytes + grown(growth.Sequence, growth.Token, growth.Pair, shape)
	}
}

// grown is what declared bytes gain with the micro-batch: so many a sequence,
// a token, and a pair of tokens of one sequence.
func grown(sequence, token, pair int64, shape *ops.Shape) int64 {
	return sequence*shape.Batch + token*shape.Tokens + pair*shape.Tokens*shape.Length
}

// most is an upper bound of a layer's growing declared bytes.
func most(figures *modelgraph.Declared, shape *ops.Shape) float64 {
	if figures == nil {
		return 0
	}
	growth := &figures.Growth
	sequence := growth.ActivationBytes.Sequence + growth.WorkspaceBytes.Sequence + growth.OutputBytes.Sequence
	token := growth.ActivationBytes.Token + growth.WorkspaceBytes.Token + growth.OutputBytes.Token
	pair := growth.ActivationBytes.Pair + growth.WorkspaceBytes.Pair + growth.OutputBytes.Pair
	return float64(sequence)*float64(shape.Batch) + float64(token)*float64(shape.Tokens) + float64(pair)*float64(shape.Tokens)*float64(shape.Length)
}

// maxCost bounds the sum of all layers' figures, so that no sum of costs overflows an int64.
const maxCost = 1 << 60

// Longest is the largest of batch and sequence lengths, for the error about too many tokens.
func Longest(workload *costmodel.Workload) (field string, value int64) {
	field, value = "batch", workload.Batch
	if workload.Seq > value {
		field, value = "seq", workload.Seq
	}
	if workload.TargetSeq > max(value, workload.Seq) {
		field, value = "target_seq", workload.TargetSeq
	}
	return field, value
}

// bound refuses sizes that would overflow, before any cost is computed.
func (model *Model) bound() error {
	sum := 0.
	for i := range model.Layers {
		layer := &model.Layers[i]
		if layer.Runs {
			sum += float64(layer.Times())*(ops.Bound(layer.Op, &layer.Shape)+most(layer.Declared, &layer.Shape)) + longest(model, i)
		}
		if sum > maxCost {
			field, value := Longest(&model.Workload)
			return costmodel.Refuse(costmodel.Set(field, value),
				"with %d tokens the layers up to %q would take more than 2^60 bytes", layer.Shape.Tokens, layer.Name)
		}
	}
	// A pipeline keeps something of every micro-batch until the step ends. Open degrees will cut it,
	// and each form that they may have is bounded on its own.
	work := &model.Workload
	open := slices.Contains([]costmodel.Degree{work.DP, work.TP, work.CP, work.PP}, costmodel.AutoDegree)
	if parts := work.MicroBatches; !open && work.Strategy.Traits().Staged && sum*float64(parts) > maxCost {
		return costmodel.Refuse(costmodel.Set("micro_batches", parts),
			"%d micro-batches of up to %.3g bytes in a pipeline would take more than 2^60 bytes; at most %d can be counted", parts, sum, int64(maxCost/sum))
	}
	return nil
}

// windowMask is the first unit with a windowed mask and its size, if one GPU runs the model and
// windowless attention comes before: its checkpoint is the last to keep the mask. -1: none.
func windowMask(model *Model) (unit int, bytes int64) {
	seen := false
	for i := range model.Layers {
		layer := &model.Layers[i]
		op, ok := layer.Op.(modelgraph.Attention)
		if !ok || layer.Stream.Kind != modelgraph.Text || !model.Workload.OneGPU || layer.Shape.MaskGiven {
			continue
		}
		if size, window := ops.MaskSaved(op, &layer.Shape); window && seen {
			return layer.UnitIndex, size
		} else if window {
			return -1, 0
		}
		seen = true
	}
	return -1, 0
}

// holdMasks keeps the masks of recomputed blocks at the embedding: one for all layers with a
// window, one for those without. A pipeline's stages make their own.
func (model *Model) holdMasks() {
	at := embedding(model.Graph)
	if at < 0 || !model.Train || !model.Recomputes && !model.Layers[at].Shape.MaskGiven || model.Workload.Strategy.Traits().Staged {
		return
	}
	var pending [2]int64
	from, _ := windowMask(model)
	for i := range model.Layers {
		layer := &model.Layers[i]
		op, ok := layer.Op.(modelgraph.Attention)
		if !ok || layer.Stream.Kind != modelgraph.Text {
			continue
		}
		size, window := ops.MaskSaved(op, &layer.Shape)
		kind := 0
		if window && from >= 0 {
			continue
		}
		if window {
			kind = 1
		}
		pending[kind] = max(pending[kind], size)
	}
	for i := range model.Layers {
		pending[0] += ops.BiasRetained(model.Layers[i].Op, &model.Layers[i].Shape)
	}
	step := &model.Layers[at].Cost.Memory
	step.Saved += pending[0] + pending[1]
	step.Forward += pending[0] + pending[1]
}
