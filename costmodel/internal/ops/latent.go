package ops

import "github.com/devmap-dev/devmap/modelgraph"

// latentAttention follows modeling_deepseek_v3.py DeepseekV3Attention: the
// latents are normalised, then expanded to full heads before the kernel. The
// cache holds the latents and the rotated part that all heads share.
func latentAttention(op modelgraph.Attention, s *Shape) Cost {
	g := geometry(op, s)
	e, n := s.e(), s.Tokens
	nope := op.HeadDim - op.RopeDim
	c := Cost{Known: true, Output: s.r() * op.Dim * n}
	latent := (4 + 2*e) * n * (op.QRank + op.KVRank)    // as a norm keeps them
	expanded := e * n * op.Heads * (nope + op.ValueDim) // v is a slice of it
	c.Step.Saved = latent + expanded + e*n*(g.q+op.Heads*op.HeadDim) + e*n*g.out + 4*op.Heads*n + 2*512 +
		2*s.r()*s.Length*op.RopeDim + s.casts(4, op.Dim, s.Weights)
	c.cache(g, op.KVRank, op.RopeDim, s)
	q := 2 * float64(n) * (float64(op.Dim)*float64(op.QRank) + float64(op.QRank)*float64(g.q))
	if op.QRank == 0 {
		q = 2 * float64(n) * float64(op.Dim*g.q)
	}
	kv := 2 * float64(n) * (float64(op.Dim)*float64(op.KVRank+op.RopeDim) + float64(op.KVRank)*float64(op.Heads)*float64(nope+op.ValueDim))
	c.FLOPs = q + kv + 2*float64(n)*float64(g.out*op.Dim) + float64(n)*float64(s.Length)*float64(g.q+g.out)
	c.attentionPeaks(op, g, s)
	return c
}
