package ops

import "github.com/devmap-dev/devmap/costmodel"

// operation is what is asked of an op; what it answers lies in the file of its
// name. [plain] answers for those that have nothing to say.
type operation interface {
	// cost is that of a layer which is trained in full.
	cost(shape *Shape) Cost
	// freeze makes it that of a frozen one with adapters: what is kept for
	// gradients of weights alone goes.
	freeze(cost *Cost, shape *Shape)
	// slack is what PyTorch's allocator adds to the large tensors that a layer
	// keeps: in a step like the last each finds the block it had, with what
	// was not split off it ([remainder]).
	slack(shape *Shape) int64
	// inputsStay are the inputs that 8-bit linear layers keep past a
	// checkpoint.
	inputsPersist(shape *Shape) int64
	// quantInfer is the peak memory of quantised products in a forward without
	// backward, above the op's input and residual stream.
	quantInfer(shape *Shape) int64
	// selected is what selective checkpointing keeps of the layer.
	selected(selective *Selective, shape *Shape, biases int) int64

	// traffic is the bytes that kernels other than matrix products and
	// attention move, as PyTorch runs them in eager mode: one kernel an
	// operation.
	traffic(shape *Shape) (forward, backward moved)
	// kernels counts what forward and backward run: the operations that
	// traffic names, and the products, with so many casts for each linear
	// layer.
	kernels(shape *Shape, casts float64) (forward, backward float64)
	// attend takes the attention kernel's products out of the linear layers'.
	attend(shape *Shape, forward, backward costmodel.Pass) (costmodel.Pass, costmodel.Pass)
	// products: it runs matrix products; unaligned: over rows that are not a
	// multiple of 16 bytes, such as the logits of an odd vocabulary, for which
	// cuBLAS has no Hopper kernel.
	products() bool
	unaligned() bool

	// bound is more than the elements of any of its figures.
	bound(shape *Shape) bound
}

// plain answers for an op that runs products, keeps nothing that is looked at
// more closely, and whose backward is not followed event by event.
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

// bound counts elements: kept a token, of score matrices, of weights.
type bound struct{ width, scores, matrix float64 }

// moved is bytes read and written: by kernels that go through tensors in order
// (vectorized_elementwise_kernel, memcpy, the loss), and by those that
// broadcast, reduce, concatenate, cast up or read slices (elementwise_kernel,
// unrolled_elementwise_kernel, reduce_kernel, CatArrayBatchedCopy).
type moved struct{ flat, strided float64 }

func (traffic moved) add(flat, strided float64) moved {
	return moved{traffic.flat + flat, traffic.strided + strided}
}

func (traffic moved) times(factor float64) moved {
	return moved{factor * traffic.flat, factor * traffic.strided}
}

// Selective computes what torchtitan's selective checkpointing keeps of a block
// (torchtitan/parallelisms/parallelize_llama.py,
// _apply_ac_to_transformer_block, mode "op"): the outputs of SDPA's flash and
// memory-efficient kernels, and of every second aten.mm from the first on. A
// linear layer with a bias is aten.addmm, which is neither kept nor counted.
// The zero value precedes a block; layers follow in the order they run
// ([Selective.CacheKV]).
type Selective struct{ products int }

// product is the next aten.mm, rows × width.
func (selective *Selective) product(shape *Shape, rows, width int64) int64 {
	selective.products++
	if selective.products%2 == 0 {
		return 0
	}
	return shape.elementBytes() * rows * width
}
