package ops

import "github.com/devmap-dev/devmap/modelgraph"

// stateSpace follows modeling_mamba.py MambaMixer.slow_forward, which runs
// where the optional mamba-ssm kernels are not installed: the discretised
// transition and input, [Inner, tokens, State] in fp32 each, are materialised
// and kept.
func stateSpace(op modelgraph.StateSpace, s *Shape) Cost {
	e, n := s.e(), s.Tokens
	inner := op.Inner * n
	states := 4 * inner * op.State
	c := Cost{Known: true, Output: s.r() * op.Dim * n}
	c.FLOPs = 2*float64(n)*float64(3*op.Dim*op.Inner+op.Inner*(op.DtRank+2*op.State)+op.DtRank*op.Inner) + 9*float64(inner)*float64(op.State)
	c.Step.Saved = 2*states + e*inner*8 + s.casts(1, op.Dim, s.Weights)
	c.Step.KV = s.Batch * op.Inner * (4*op.State + e*op.Kernel) // the recurrent state
	c.Step.Forward = 2*s.r()*op.Dim*n + 3*states + e*inner*8 + c.Step.KV
	c.peak(moment{s.r()*op.Dim*n + 2*states + 4*e*inner, s.NewGrads, s.NewGrads})
	return c
}
