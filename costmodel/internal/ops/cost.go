package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
)

// Cost is a layer's memory with its FLOPs and the size of its output.
type Cost struct {
	Memory costmodel.LayerMemory
	FLOPs  float64 // of one forward
	Output int64
	// Casts are the 16-bit copies that autocast makes of the layer's weights.
	Casts int64
	// Arguments are what the call of the wrap unit around the layer holds
	// until it returns, in inference.
	Arguments int64
	// Known is false if nothing but the tensors is known.
	Known bool
	// Waiting is what a frozen block's backward has made before the first
	// tensor that it needs makes it run forward again.
	Waiting int64
	// Stays is what a recomputed block keeps anyway ([Shape.inputsStay]).
	Persists int64
	// back is what an attention kernel's backward holds.
	back int64
}

// backwardPoint is one point of a backward pass. activations are bytes in addition to the
// saved ones. grads are the layer's own gradients at this point, and fresh is the part
// that was just made. If the parameters had gradients before, only fresh exists: autograd
// adds each gradient in place before the next node runs
// (torch/csrc/autograd/functions/accumulate_grad.h, accumulateGrad).
type backwardPoint struct{ activations, grads, fresh int64 }

// peak sets the step's backward to the largest of its moments.
func (cost *Cost) peak(moments ...backwardPoint) {
	for _, moment := range moments {
		cost.Memory.AccumPeak = max(cost.Memory.AccumPeak, moment.activations+moment.fresh)
		if t := moment.activations + moment.grads; t > cost.Memory.Backward {
			cost.Memory.Backward, cost.Memory.BackwardGrads = t, moment.grads
		}
	}
}

// frozenOther adds adapters to an op whose backward is not followed event by
// event: a moment for the widest adapter on top of the input's and the
// output's gradients.
func frozenOther(cost *Cost, shape *Shape) { cost.adapted(shape, shape.adapterSaved(false)) }

// adapted is [frozenOther] with what the adapters keep.
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

// The GPU that the sums of reduceBuffer are cut for: an H100 or H200.
const (
	processors       = 132
	processorThreads = 2048
)

// ReduceBuffer is where the sum over rows of a [rows, columns] tensor, the
// gradient of a bias or of a norm's weight, puts the parts that its blocks make
// (ATen/native/cuda/Reduce.cuh, setReduceConfig and
// ReduceConfig::global_memory_size). A block has 128 threads, 32 along the
// columns with 4 columns each; the rows are cut over blocks where a thread
// would have 256 values or more.
func ReduceBuffer(rows, columns int64) int64 {
	const (
		vector, width, height = 4, 32, 4
		least, most           = 16, 256 // values a thread
	)
	if columns%vector != 0 || columns < vector*width {
		return 0
	}
	values := up(rows, height)
	blocks := up(columns/vector, width)
	target := int64(processors * processorThreads / (width * height))
	if values < most || blocks > target {
		return 0
	}
	parts := max(min(up(target, blocks), up(values, least)), up(values, most))
	if parts < 2 {
		return 0
	}
	return 4 * columns * parts * width * vector // fp32
}

func up(amount, divisor int64) int64 { return (amount + divisor - 1) / divisor }

// remainder is what the block of a large tensor has in addition to it
// ([allocator.Rounding]); what is rounded to 512 B is left out.
func remainder(size int64) int64 {
	if rounding := allocator.Rounding(size); rounding >= 512 {
		return rounding
	}
	return 0
}
