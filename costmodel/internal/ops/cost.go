package ops

import (
	"math/bits"

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

// These sizes are of an H100 or H200; sums are divided for them.
const (
	processors       = 132
	processorThreads = 2048
)

// InKernel returns the bytes that a CUDA kernel takes by a rule of sizes. The rules and their sources
// are those of modelgraph/python/devmap/_core/measure/hidden.py (RULES). An unknown rule is -1.
func InKernel(rule string, sizes []int64) int64 {
	const (
		sortFrom  = 3072    // indices of an embedding's gradient
		partsFrom = 1 << 16 // rows of a norm's gradient
	)
	counts := map[string]int{"sum": 2, "flash": 3, "efficient": 3, "wide": 3, "sorted": 1, "segments": 3, "norm": 3, "norm sum": 2}
	if counts[rule] != len(sizes) {
		return -1
	}
	first, parts := sizes[0], int64(0)
	if rule[0] == 'n' && first > partsFrom && sizes[1]/32 < processors/2 {
		parts = 4 * up(first, 128)
	}
	switch {
	case rule == "sum":
		return ReduceBuffer(first, sizes[1])
	case rule == "flash" && sizes[2] == 1:
		return 4 * first * 128 * up(sizes[1], 128)
	case rule == "flash" && sizes[2] <= 128:
		return 4 * first * 128 * up(sizes[1], 128) * 32 * up(sizes[2], 32)
	case rule == "flash":
		return 4 * first * 128 * up(sizes[1], 128) * 64 * up(sizes[2], 64)
	case rule == "efficient":
		return first * up(sizes[1], 128) * (4*128*64*up(sizes[2], 64) + 32)
	case rule == "wide" && max(sizes[1], sizes[2]) > 128:
		return 4 * first * sizes[2]
	case rule == "sorted" && first > sortFrom:
		return 8 * first
	case rule == "segments" && first > sortFrom:
		return 4 * (up(first, 10) + min(first, sizes[1])) * sizes[2]
	case rule == "norm":
		return parts * sizes[1] * sizes[2]
	case rule == "norm sum":
		return ReduceBuffer(parts, sizes[1])
	}
	return 0
}

// ReduceBuffer returns the bytes of partial sums for a sum over rows of a [rows, columns] tensor. A
// bias's gradient is such a sum, and so is that of a norm's weight. Source:
// ATen/native/cuda/Reduce.cuh, setReduceConfig and ReduceConfig::global_memory_size. A thread has up
// to 4 columns. If it would have 256 values or more, several blocks divide the rows.
func ReduceBuffer(rows, columns int64) int64 {
	const least, most = 16, 256 // values per thread
	if rows <= 0 || columns <= 0 {
		return 0
	}
	vector := min(4, columns&-columns)
	threads, wide := 512/vector, power(columns/vector)
	height := min(power(rows), threads/min(32, wide))
	width := min(wide, threads/height)
	values, blocks := up(rows, height), up(columns, width*vector)
	target := processors * (processorThreads / (width * height))
	if values < most || blocks > target {
		return 0
	}
	parts := max(min(up(target, blocks), up(values, least)), up(values, most))
	if parts < 2 {
		return 0
	}
	return 4 * columns * parts * width * vector // fp32
}

// power is the largest power of two that is not above count.
func power(count int64) int64 { return 1 << (max(1, bits.Len64(uint64(count))) - 1) }

func up(amount, divisor int64) int64 { return (amount + divisor - 1) / divisor }

// remainder returns the bytes that the block of a large tensor has in addition to it
// ([allocator.Rounding]). It ignores rounding to 512 B.
func remainder(size int64) int64 {
	if rounding := allocator.Rounding(size); rounding >= 512 {
		return rounding
	}
	return 0
}
