package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Passes returns a layer's work in forward and backward of one micro-batch. Its products have flops
// FLOPs (see [Of]). Every other kernel reads and writes its tensors once. Weights get no gradient
// if frozen is set.
func Passes(op modelgraph.Op, shape *Shape, flops float64, frozen bool) (forward, backward costmodel.Pass) {
	if shape.Tokens == 0 {
		return forward, backward
	}
	asked := operationOf(op)
	if asked.products() {
		forward.Products = flops
	}
	ahead, back := asked.traffic(shape)
	forward.Traffic, forward.Strided, backward.Traffic, backward.Strided = ahead.flat, ahead.strided, back.flat, back.strided
	casts := 0. // of inputs and weights under autocast, for each linear layer
	if MixedPrecision(shape.Precision) {
		casts = 2
	}
	forward.Kernels, backward.Kernels = asked.kernels(shape, casts)
	forward, backward = asked.attend(shape, forward, backward)
	// One product in forward becomes two in backward: for the input's gradient and for the
	// weight's.
	backward.Products += forward.Products
	if !frozen {
		backward.Products += forward.Products
		weight, grads := float64(shape.weightBytes()), float64(shape.SecondGrads)
		backward.Traffic += 3 * grads // added to the existing gradient
		if MixedPrecision(shape.Precision) {
			// Backward of autocast's cast makes each gradient in 16 bits and casts it.
			backward.Strided += (2 + weight) * float64(shape.Weights)
		}
	}
	if MixedPrecision(shape.Precision) && asked.products() {
		forward.Traffic += (4 + 2) * float64(shape.Weights) // autocast casts each weight once per forward
	}
	if shape.elementBytes() == 2 && asked.unaligned() {
		forward.Products, forward.Unaligned = 0, forward.Products
		backward.Products, backward.Unaligned = 0, backward.Products
	}
	if !shape.Train {
		backward = costmodel.Pass{}
	}
	return forward, backward
}
