package ops

import "github.com/devmap-dev/devmap/modelgraph"

// embedding follows torch.nn.Embedding with a dense gradient. From 3072
// tokens on, embedding_dense_backward (Embedding.cu) sorts the tokens and
// adds partial sums in fp32, about one in ten tokens and each distinct one.
func embedding(op modelgraph.Embedding, s *Shape) Cost {
	n := s.Tokens
	out := s.r() * op.Dim * n
	c := Cost{Known: true, Output: out, FLOPs: float64(op.Dim * n)}
	c.Step.Saved = 8 * n // the indices
	c.Step.Forward = out + 8*n
	if op.Scaled {
		c.Step.Forward += out
	}
	if s.Scatter {
		c.Step.Forward += scattered(op.Dim, s)
	}
	if s.Inputs {
		// inputs_embeds, a variable of LlamaModel.forward and its like. The
		// first block's input is the same tensor, and counts twice there.
		c.Step.UntilBodyEnd = out
	}
	var sums int64
	if n > 3072 {
		sums = 4*op.Dim*(n/10+min(n, op.Vocab)) + 3*8*n
	}
	grads := s.NewGrads + s.SecondGrads
	c.peak(moment{out + sums, grads, grads})
	return c
}
