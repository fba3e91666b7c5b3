package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Passes is what a layer's forward and backward take of a device's time for
// one micro-batch: its products by flops, those of [Of], and the bytes that
// every other kernel reads and writes, one pass over each of its tensors.
// frozen: the weights get no gradient.
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
	// A product in forward is two in backward: for the input's gradient and
	// for the weight's.
	backward.Products += forward.Products
	if !frozen {
		backward.Products += forward.Products
		weight, grads := float64(shape.weightBytes()), float64(shape.SecondGrads)
		backward.Traffic += 3 * grads // added to the gradient that is there
		if MixedPrecision(shape.Precision) {
			// Each gradient is made in 16 bits and cast (autocast's cast of
			// the weight, going back).
			backward.Strided += (2 + weight) * float64(shape.Weights)
		}
	}
	if MixedPrecision(shape.Precision) && asked.products() {
		forward.Traffic += (4 + 2) * float64(shape.Weights) // autocast casts each weight once a forward
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
