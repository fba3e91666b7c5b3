package layers

import (
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// matrixStates is what the allocator adds to optimizer states and gradients of
// an MLP's matrices where every GPU runs the whole model. States come in the
// first step, after a backward: if it freed wider activations, they are cut
// from those and pay nothing; where activations are no wider, or recomputed, so
// that those of one block alone are there, the first are cut from what the loss
// left, and each of the others takes a segment and pays as its weight did. A
// gradient is made when its own layer's activations have just been freed,
// recomputed or not. Under a device map the loss is on one GPU, and who pays
// depends on the map: not counted.
type matrixStates struct {
	model *Model
	// lossBlocks is what is left of the loss's blocks while states are laid
	// out, in the order of the
	lossBlocks int64
}

func (states *matrixStates) padding(layer *Layer) (state, grads int64) {
	model := states.model
	op, ok := layer.Op.(modelgraph.MLP)
	if !ok || !model.Rules.Padding || model.Frozen {
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
		if !wider || model.Recomputes {
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
