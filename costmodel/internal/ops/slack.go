package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// slack is what PyTorch's allocator adds to the large tensors that a layer
// keeps: in a step like the last each finds the block it had, with what was
// not split off it ([remainder]).
func slack(op modelgraph.Op, s *Shape) int64 {
	e, n := s.e(), s.Tokens
	switch op := op.(type) {
	case modelgraph.MLP:
		tensors := activationExtra(op.Activation) + 1
		if op.Gated {
			tensors += 2
		}
		return tensors * remainder(e*op.Hidden*n)
	case modelgraph.Norm:
		if op.Style == modelgraph.LayerNorm {
			return 2 * remainder(s.r()*op.Dim*n)
		}
		return remainder(4*op.Dim*n) + 2*remainder(e*op.Dim*n)
	case modelgraph.Attention:
		if op.KVRank == 0 {
			return attentionSlack(op, s)
		}
	}
	return 0
}

func attentionSlack(op modelgraph.Attention, s *Shape) int64 {
	q, k := s.e()*op.Heads*op.HeadDim*s.Tokens, s.e()*op.KVHeads*op.HeadDim*s.Tokens
	switch {
	case op.Fused && op.Rope: // the projection, q and k rotated, the output and its copy
		return remainder(q+2*k) + 3*remainder(q) + remainder(k)
	case op.Fused:
		return remainder(q+2*k) + remainder(q)
	}
	return 2*remainder(q) + 2*remainder(k)
}

// remainder is what the block of a large tensor has beside it
// ([costmodel.Rounding]); what is rounded to 512 B is left out.
func remainder(size int64) int64 {
	if r := costmodel.Rounding(size); r >= 512 {
		return r
	}
	return 0
}
