package layers

import (
	"fmt"
	"sync"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// matrixStates are the allocator's rests of optimizer states and gradients of an MLP's matrices, if
// every GPU runs the whole model. States come in the first step, after a backward. If it freed
// wider activations, states are cut from them without a rest. If activations are no wider, or
// recomputed, only one block's are free. Then the first states are cut from the loss's blocks, and
// each other takes a segment with its weight's rest. A gradient is made right after its layer's
// activations are freed, recomputed or not. Under a device map one GPU has the loss; the first
// states' excess on the others depends on the map, and is not counted.
type matrixStates struct {
	model *Model
	// lossBlocks is the rest of the loss's blocks while states are laid out.
	lossBlocks int64
	rests      []int64 // of parameters, by layer, if they follow one another
}

func (states *matrixStates) padding(layer *Layer) (state, grads int64) {
	model := states.model
	op, ok := layer.Op.(modelgraph.MLP)
	if _, followed := model.Followed(); !ok || !model.Rules.Padding || model.Frozen || followed {
		return 0, 0
	}
	width := ops.ComputeBytes(model.Rules.Compute) * op.Hidden * layer.Shape.Tokens
	width += allocator.Rounding(width)
	each := ops.WeightBytes(model.Workload.Precision)
	for _, tensor := range layer.Owned() {
		size := tensor.Numel * each
		padding := allocator.Rounding(size)
		if !tensor.DType.Float() || padding < 512 {
			continue
		}
		wider := width > size+padding
		if !wider || model.again[layer.UnitIndex] {
			has, _ := model.Optimizer.State(tensor.Shape, tensor.Numel, each)
			cut := min(has, states.lossBlocks) / size // states that the loss's blocks have room for
			states.lossBlocks -= cut * size
			state += (has/size - cut) * padding
		}
		if !wider {
			grads += padding
		}
	}
	return state, grads
}

// freedByLoss is the size of the blocks that the loss leaves: logits, fp32
// logits, log-softmax and a gradient (modeling code's ForCausalLMLoss).
func freedByLoss(model *Model) int64 {
	if loss := model.loss(); loss != "" && loss != value.LossEager {
		return 0
	}
	var total int64
	for i := range model.Layers {
		if head, ok := model.Layers[i].Op.(modelgraph.Head); ok {
			shape := &model.Layers[i].Shape
			total += (ops.ComputeBytes(shape.Precision) + 3*4) * shape.Logits * head.Vocab
		}
	}
	return total
}

// Followed are [Rules.Rests], which are looked for once.
func (model *Model) Followed() (rests [2]int64, ok bool) {
	if model.follow == nil {
		model.follow = sync.OnceValues(func() (rests [2]int64, ok bool) {
			torchao := model.Workload.Float8 != "" || model.Optimizer.compiled() // its casts and its step are not followed
			if model.Rules.Rests == nil || model.Workload.Mode == costmodel.Load || torchao || model.Frozen && !model.Rules.InOrder {
				return rests, false
			}
			return model.Rules.Rests(model)
		})
	}
	return model.follow()
}

// rests is the allocator's rounding of each layer's parameters if a GPU holds the whole model, or a
// shard of each tensor. Module._apply copies one tensor after another to an empty GPU
// (torch/nn/modules/module.py), so later ones fill earlier ones' rests. PEFT's A and B follow the
// weight that they adapt; under [Rules.InOrder] they are cast later, and count alone. With
// [Rules.StatesApart] the optimizer's states come after all parameters.
func (model *Model) rests() []int64 {
	var pool allocator.Pool
	out := make([]int64, len(model.Layers))
	all := make([][]stored, len(model.Layers))
	for i := range model.Layers {
		all[i] = model.Layers[i].Shard.stored()
		for _, tensor := range all[i] {
			if tensor.adapter && model.Rules.InOrder {
				out[i] += allocator.Rounding(tensor.size)
			} else {
				out[i] += pool.Alloc(tensor.size) - tensor.size
			}
		}
	}
	for i := range model.Layers {
		for _, tensor := range all[i] {
			for range tensor.states {
				out[i] += pool.Alloc(tensor.size) - tensor.size
			}
		}
	}
	shareRests(all, out)
	return out
}

// shareRests gives layers of the same tensors the mean of their rests. Which of them fills an
// earlier one's rest depends on the map, and a search needs equal costs for equal layers.
func shareRests(all [][]stored, rests []int64) {
	alike := make(map[string][]int)
	for i := range all {
		key := fmt.Sprint(all[i])
		alike[key] = append(alike[key], i)
	}
	for _, layers := range alike {
		var sum int64
		for _, i := range layers {
			sum += rests[i]
		}
		for _, i := range layers {
			rests[i] = sum / int64(len(layers))
		}
	}
}

// stored is a tensor of a part, and the number of its size in optimizer states outside a step's
// freed blocks; adapter: it is PEFT's.
type stored struct {
	size, states int64
	adapter      bool
}

// stored are a part's tensors in the order in which they are made.
func (part *Part) stored() (out []stored) {
	if _, declared := part.DeclaredBytes(); declared {
		return nil
	}
	matrices := part.Matrices()
	for j := range part.Params {
		linear, own := part.linear[j], part.tensors(j)
		if len(out) > 0 && len(own) > 0 && joins(part, linear) {
			out[len(out)-1].size += own[0].size
		} else {
			out = append(out, own...)
		}
		for k := range part.Adapters {
			if linear != nil && part.Adapters[k].Module == linear.Below {
				each := part.model.adapterWeight()
				out = append(out, stored{size: each * matrices[2*k].Numel(), adapter: true}, stored{size: each * matrices[2*k+1].Numel(), adapter: true})
			}
		}
	}
	return out
}

// joins reports a linear layer of q, k and v, which torchtitan has in one (models/llama3, fuse_qkv).
func joins(part *Part, linear *Projection) bool {
	_, attention := part.Op.(modelgraph.Attention)
	return part.model.Rules.Modules == ops.Torchtitan && attention && linear != nil && !linear.Output
}

// tensors are what parameter j is stored as; of a tied one nothing.
func (part *Part) tensors(j int) (out []stored) {
	for _, size := range part.quantised(j) {
		out = append(out, stored{size: size})
	}
	model, tensor := part.model, &part.Params[j]
	if len(out) > 0 || tensor.Owner != "" || part.Stored(j) == 0 {
		return out
	}
	one := stored{size: part.Stored(j)}
	if model.Rules.StatesApart && tensor.DType.Float() && !model.Frozen {
		state, _ := model.Optimizer.State(tensor.Shape, tensor.Numel, ops.WeightBytes(model.Workload.Precision))
		one.states = state / one.size
	}
	return append(out, one)
}
