package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
)

// Cost is a layer's memory, its FLOPs and the bytes of its output.
type Cost struct {
	Memory costmodel.LayerMemory
	FLOPs  float64 // of one forward
	Output int64
	// Casts is the bytes of 16-bit copies of the layer's weights that autocast makes.
	Casts int64
	// Arguments is the bytes that the call of the wrap unit around the layer keeps until it
	// returns, in inference.
	Arguments int64
	// Known is false if only the layer's tensors are known.
	Known bool
	// Waiting is the bytes that a frozen block's backward has made before it needs the first tensor
	// that is not kept, which makes forward run again.
	Waiting int64
	// Persists is the bytes that a recomputed block keeps ([operation.inputsPersist]).
	Persists int64
	// back is the peak bytes of an attention kernel's backward.
	back int64
}

// backwardPoint is one point of a backward pass. activations is bytes in addition to the saved
// ones. grads is the layer's own gradients at this point, and fresh the part just made. If the
// parameters had gradients before, only fresh exists: autograd adds each gradient in place before
// the next node runs (torch/csrc/autograd/functions/accumulate_grad.h, accumulateGrad).
type backwardPoint struct{ activations, grads, fresh int64 }

// peak raises the step's backward to the largest of the moments.
func (cost *Cost) peak(moments ...backwardPoint) {
	for _, moment := range moments {
		cost.Memory.AccumPeak = max(cost.Memory.AccumPeak, moment.activations+moment.fresh)
		if t := moment.activations + moment.grads; t > cost.Memory.Backward {
			cost.Memory.Backward, cost.Memory.BackwardGrads = t, moment.grads
		}
	}
}

// frozenOther adds adapters to an op whose backward is not followed event by event. It adds a
// moment for the widest adapter on top of the input's and the output's gradients.
func frozenOther(cost *Cost, shape *Shape) { cost.adapted(shape, shape.adapterSaved(false)) }

// adapted is [frozenOther] for adapters that keep saved bytes.
func (cost *Cost) adapted(shape *Shape, saved int64) {
	cost.Memory.Saved += saved
	cost.Memory.Forward = max(cost.Memory.Forward, cost.Memory.Saved) + shape.work()
	work := 2 * cost.Output
	for i := range shape.Adapters {
		adapter := &shape.Adapters[i]
		if adapter.Folded > 0 {
			continue
		}
		work = max(work, cost.Output+shape.Tokens*((shape.elementBytes()+2*shape.adapterBytes())*adapter.Out+shape.elementBytes()*adapter.In))
	}
	cost.peak(backwardPoint{work + cost.Output, shape.NewGrads, shape.NewGrads})
}

// remainder returns the bytes that the block of a large tensor has in addition to it
// ([allocator.Rounding]). It ignores rounding to 512 B.
func remainder(size int64) int64 {
	if rounding := allocator.Rounding(size); rounding >= 512 {
		return rounding
	}
	return 0
}
