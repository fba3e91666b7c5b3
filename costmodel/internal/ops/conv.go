package ops

import "github.com/devmap-dev/devmap/modelgraph"

// conv is a convolution.
type conv struct {
	plain
	modelgraph.Conv
}

// conv is a convolution: its input is kept for the weight's gradient. Patches
// do not overlap, so that a token's input is its whole patch.
func (op conv) cost(shape *Shape) Cost {
	tokens := shape.Tokens * max(1, op.TokenRatio)
	act := int64(0)
	if op.Activation != "" {
		act = activationExtra(op.Activation) + 1
	}
	return dense(op.In*max(1, op.Stride)*tokens, op.Out*tokens, act, 2*float64(tokens)*float64(op.In)*float64(op.Kernel)*float64(op.Out), shape)
}

// freeze keeps the input for an adapter alone, as [linear] does.
func (op conv) freeze(cost *Cost, shape *Shape) {
	cost.Memory.Saved -= shape.elementBytes() * op.In * shape.Tokens * max(1, op.TokenRatio)
	cost.adapted(shape, shape.adapterSaved(false))
}

func (op conv) traffic(shape *Shape) (forward, backward moved) { return denseTraffic(op.Out, shape) }

func (op conv) bound(*Shape) bound {
	return bound{width: float64(max(1, op.TokenRatio)) * (float64(op.In)*float64(max(1, op.Stride)) + 6*float64(op.Out))}
}
