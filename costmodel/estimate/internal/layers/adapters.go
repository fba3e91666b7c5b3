package layers

import (
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Matrices are the part's adapters: A [rank, in] and B [out, rank], or one GPU's rows of them.
func (part *Part) Matrices() []Matrix {
	var out []Matrix
	for _, adapter := range part.Adapters {
		out = append(out, Matrix{shard.Share(adapter.Rank, part.degree), adapter.In}, Matrix{shard.Share(adapter.Out, part.degree), adapter.Rank})
	}
	return out
}

// AdapterBytes is the size of the adapters and the allocator's rounding.
func (part *Part) AdapterBytes() (size, padding int64) {
	for _, matrix := range part.Matrices() {
		bytes := part.model.adapterWeight() * matrix.Numel()
		size += bytes
		padding += allocator.Rounding(bytes)
	}
	return size, padding
}

// adapterWeight is the size of an element of an adapter's parameter, and of its
// gradient and states unless DeepSpeed keeps a master.
func (model *Model) adapterWeight() int64 {
	if model.Workload.LoRAPrecision == value.AdaptersBF16 {
		return 2
	}
	return 4
}

// AdapterReduce is the size of a reduced adapter gradient's element.
func (model *Model) AdapterReduce() int64 {
	if model.Rules.ReduceAsComputed {
		return model.AdapterCompute()
	}
	return model.adapterWeight()
}

// AdapterStored is the size of an element of an adapter's stored gradient.
func (model *Model) AdapterStored() int64 { return model.adapterWeight() }

// AdapterCompute is the size of an adapter's element in the ops, and of its gradient's there:
// FSDP2's mixed precision gathers fp32 shards as 16 bits.
func (model *Model) AdapterCompute() int64 {
	if model.Rules.Cut && (model.Rules.Compute != model.Workload.Precision || model.Rules.Adapters16) {
		return ops.WeightBytes(model.Rules.Compute)
	}
	return model.adapterWeight()
}

// inputGrads finds the layers that gradients reach: those after an adapter, and with checkpoints
// all after the embedding, since PEFT lets its output require one (enable_input_require_grads).
func (model *Model) inputGrads() []bool {
	reached := make([]bool, len(model.Layers))
	out := make([]bool, len(model.Layers)) // the layer's output requires one
	if model.Recomputes {
		if i := embedding(model.Graph); i >= 0 {
			reached[i], out[i] = true, true
		}
	}
	for changed := true; changed; {
		changed = false
		for i := range model.Layers {
			layer := &model.Layers[i]
			if _, rotary := layer.Op.(modelgraph.Rotary); rotary || out[i] {
				continue
			}
			for _, j := range layer.InputLayers {
				reached[i] = reached[i] || out[j]
			}
			if reached[i] || len(layer.Whole.Adapters) > 0 {
				out[i], changed = true, true
			}
		}
	}
	return reached
}
