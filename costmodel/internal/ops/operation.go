package ops

import "github.com/devmap-dev/devmap/costmodel"

// operation is the interface of an op; each op implements it in the file of its name. [plain] has
// the default methods.
type operation interface {
	// cost returns the cost of a layer whose weights are all trained.
	cost(shape *Shape) Cost
	// freeze changes the cost to that of a frozen layer with adapters. It removes tensors kept only
	// for gradients of weights.
	freeze(cost *Cost, shape *Shape)
	// slack returns the bytes that PyTorch's allocator adds to the large tensors of a layer. In a
	// step like the last one, each tensor gets its old block, including the part that was not split
	// off ([remainder]).
	slack(shape *Shape) int64
	// inputsPersist returns the bytes of inputs that 8-bit linear layers keep past a checkpoint.
	inputsPersist(shape *Shape) int64
	// quantInfer returns the peak bytes of quantized products in a forward without backward, in
	// addition to the op's input and residual stream.
	quantInfer(shape *Shape) int64
	// selected returns the bytes that selective checkpointing keeps of the layer.
	selected(selective *Selective, shape *Shape, biases int) int64

	// traffic returns the bytes moved by kernels other than matrix products and attention in
	// PyTorch's eager mode, one kernel per operation.
	traffic(shape *Shape) (forward, backward moved)
	// kernels counts the kernels of forward and backward: the operations in traffic, and the
	// products, with casts for each linear layer.
	kernels(shape *Shape, casts float64) (forward, backward float64)
	// attend moves the attention kernel's products out of the linear layers'.
	attend(shape *Shape, forward, backward costmodel.Pass) (costmodel.Pass, costmodel.Pass)
	// products reports that the op runs matrix products. unaligned reports that their rows are not
	// a multiple of 16 bytes, such as the logits of an odd vocabulary; cuBLAS has no Hopper kernel
	// for these.
	products() bool
	unaligned() bool

	// bound is larger than the elements of any of the op's figures.
	bound(shape *Shape) bound
}

// plain implements an op that runs products, keeps nothing special, and whose backward is not
// followed event by event.
type plain struct{}

func (plain) freeze(cost *Cost, shape *Shape)                     { frozenOther(cost, shape) }
func (plain) slack(*Shape) int64                                  { return 0 }
func (plain) inputsPersist(*Shape) int64                          { return 0 }
func (plain) quantInfer(*Shape) int64                             { return 0 }
func (plain) selected(*Selective, *Shape, int) int64              { return 0 }
func (plain) traffic(*Shape) (forward, backward moved)            { return moved{}, moved{} }
func (plain) kernels(*Shape, float64) (forward, backward float64) { return 2, 4 }
func (plain) products() bool                                      { return true }
func (plain) unaligned() bool                                     { return false }
func (plain) bound(*Shape) bound                                  { return bound{} }

func (plain) attend(_ *Shape, forward, backward costmodel.Pass) (costmodel.Pass, costmodel.Pass) {
	return forward, backward
}

// bound counts elements: per token, of score matrices, and of weights.
type bound struct{ width, scores, matrix float64 }

// moved is the bytes read and written. Field flat is for kernels that read tensors in order
// (vectorized_elementwise_kernel, memcpy, the loss). Field strided is for kernels that broadcast,
// reduce, concatenate, cast up or read slices. Examples are elementwise_kernel,
// unrolled_elementwise_kernel, reduce_kernel and CatArrayBatchedCopy.
type moved struct{ flat, strided float64 }

func (traffic moved) add(flat, strided float64) moved {
	return moved{traffic.flat + flat, traffic.strided + strided}
}

func (traffic moved) times(factor float64) moved {
	return moved{factor * traffic.flat, factor * traffic.strided}
}

// Selective computes the bytes that torchtitan's selective checkpointing keeps of a block. Source:
// torchtitan/parallelisms/parallelize_llama.py, _apply_ac_to_transformer_block, mode "op". It keeps
// the outputs of SDPA's flash and memory-efficient kernels, and of every second aten.mm from the
// first on. A linear layer with a bias is aten.addmm, which is neither kept nor counted. Start each
// block with the zero value, and call it for its layers in execution order ([Selective.CacheKV]).
type Selective struct{ products int }

// product returns the bytes kept of the next aten.mm, rows × width.
func (selective *Selective) product(shape *Shape, rows, width int64) int64 {
	selective.products++
	if selective.products%2 == 0 {
		return 0
	}
	return shape.elementBytes() * rows * width
}
