package ops

import "github.com/devmap-dev/devmap/modelgraph"

// stateSpace is Mamba's mixer.
type stateSpace struct {
	plain
	modelgraph.StateSpace
}

// stateSpace follows modeling_mamba.py MambaMixer.slow_forward, which runs
// where the optional mamba-ssm kernels are not installed: the discretised
// transition and input, [Inner, tokens, State] in fp32 each, are materialised
// and kept.
func (op stateSpace) cost(shape *Shape) Cost {
	element, tokens := shape.elementBytes(), shape.Tokens
	inner := op.Inner * tokens
	states := 4 * inner * op.State
	cost := Cost{Known: true, Output: shape.streamBytes() * op.Dim * tokens}
	cost.FLOPs = 2*float64(tokens)*float64(3*op.Dim*op.Inner+op.Inner*(op.DtRank+2*op.State)+op.DtRank*op.Inner) + 9*float64(inner)*float64(op.State)
	cost.Memory.Saved = 2*states + element*inner*8 + shape.casts(1, op.Dim, shape.Weights)
	cost.Memory.KV = shape.Batch * op.Inner * (4*op.State + element*op.Kernel) // the recurrent state
	cost.Memory.Forward = 2*shape.streamBytes()*op.Dim*tokens + 3*states + element*inner*8 + cost.Memory.KV
	cost.peak(backwardPoint{shape.streamBytes()*op.Dim*tokens + 2*states + 4*element*inner, shape.NewGrads, shape.NewGrads})
	return cost
}

// selected are in_proj, x_proj and out_proj; dt_proj has a bias.
func (op stateSpace) selected(selective *Selective, shape *Shape, _ int) int64 {
	return selective.product(shape, shape.Tokens, 2*op.Inner) + selective.product(shape, shape.Tokens, op.DtRank+2*op.State) + selective.product(shape, shape.Tokens, op.Dim)
}

// traffic is the transition, the input and the states, made and read.
func (op stateSpace) traffic(shape *Shape) (forward, backward moved) {
	states := float64(shape.Tokens) * float64(4*op.Inner*op.State)
	return moved{flat: 6 * states}, moved{flat: 12 * states}
}

func (stateSpace) kernels(*Shape, float64) (forward, backward float64) { return 20, 40 }

func (op stateSpace) bound(*Shape) bound {
	return bound{width: float64(op.Dim) + float64(op.Inner)*(8+float64(op.State)+float64(op.Kernel))}
}
