package ops

import "github.com/devmap-dev/devmap/modelgraph"

// stateSpace is Mamba's mixer.
type stateSpace struct {
	plain
	modelgraph.StateSpace
}

// stateSpace follows modeling_mamba.py MambaMixer.slow_forward, which runs if
// the optional mamba-ssm kernels are not installed: the discretised transition
// and input, [Inner, tokens, State] in fp32 each, are materialised and kept.
func (op stateSpace) cost(shape *Shape) Cost {
	if op.Heads > 0 {
		return op.chunked(shape)
	}
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

// chunked follows the algorithm in chunks (Dao and Gu 2024, arXiv 2405.21060,
// §6): within a chunk the scores of all pairs of its tokens, a matrix a head in
// fp32, and their decay; between chunks a state a head. Both are kept, in
// addition to what the projections and the convolution give. It is the
// algorithm that was read, not a family's code.
func (op stateSpace) chunked(shape *Shape) Cost {
	element, tokens := shape.elementBytes(), shape.Tokens
	keys := op.Groups * op.State
	inputs := 2*op.Inner + 2*keys + op.Heads
	scores := 4 * op.Heads * op.Chunk * tokens
	states := 4 * op.Inner * op.State * ((tokens + op.Chunk - 1) / max(1, op.Chunk))
	cost := Cost{Known: true, Output: shape.streamBytes() * op.Dim * tokens}
	cost.FLOPs = 2 * float64(tokens) * (float64(op.Dim)*float64(inputs+op.Inner) + float64(op.Chunk)*float64(keys+op.Inner) + 2*float64(op.Inner)*float64(op.State))
	cost.Memory.Saved = element*tokens*(2*inputs+3*op.Inner) + 2*scores + 2*states + shape.casts(1, op.Dim, shape.Weights)
	cost.Memory.KV = shape.Batch * (4*op.Inner*op.State + element*(op.Inner+2*keys)*op.Kernel) // the recurrent state
	cost.Memory.Forward = 2*shape.streamBytes()*op.Dim*tokens + 3*scores + 2*states + element*inputs*tokens + cost.Memory.KV
	cost.peak(backwardPoint{shape.streamBytes()*op.Dim*tokens + 2*scores + 2*states + 2*element*inputs*tokens, shape.NewGrads, shape.NewGrads})
	return cost
}

// selected are in_proj, x_proj and out_proj; dt_proj has a bias.
func (op stateSpace) selected(selective *Selective, shape *Shape, _ int) int64 {
	if op.Heads > 0 {
		return selective.product(shape, shape.Tokens, 2*op.Inner+2*op.Groups*op.State+op.Heads) + selective.product(shape, shape.Tokens, op.Dim)
	}
	return selective.product(shape, shape.Tokens, 2*op.Inner) + selective.product(shape, shape.Tokens, op.DtRank+2*op.State) + selective.product(shape, shape.Tokens, op.Dim)
}

// traffic is the transition, the input and the states, made and read.
func (op stateSpace) traffic(shape *Shape) (forward, backward moved) {
	states := float64(shape.Tokens) * float64(4*op.Inner*op.State)
	if op.Heads > 0 {
		states = float64(shape.Tokens) * 4 * float64(op.Heads*op.Chunk+op.Inner*op.State/max(1, op.Chunk))
	}
	return moved{flat: 6 * states}, moved{flat: 12 * states}
}

func (stateSpace) kernels(*Shape, float64) (forward, backward float64) { return 20, 40 }

func (op stateSpace) bound(*Shape) bound {
	if op.Heads > 0 {
		return bound{width: float64(op.Dim) + 4*float64(op.Heads*op.Chunk) + float64(op.Inner*op.State) + float64(2*op.Groups*op.State+op.Inner)*(8+float64(op.Kernel))}
	}
	return bound{width: float64(op.Dim) + float64(op.Inner)*(8+float64(op.State)+float64(op.Kernel))}
}
