package ops

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Selective works out what torchtitan's selective checkpointing keeps of a
// block (torchtitan/parallelisms/parallelize_llama.py,
// _apply_ac_to_transformer_block, mode "op"): the outputs of SDPA's flash and
// memory-efficient kernels, and of every second aten.mm from the first on. A
// linear layer with a bias is aten.addmm, which is neither kept nor counted.
// The zero value stands before a block; layers follow in the order they run.
type Selective struct{ products int }

// Kept is what stays of a layer's forward, in bytes; biases is how many of its
// linear layers have one.
func (c *Selective) Kept(op modelgraph.Op, s *Shape, biases int) int64 {
	switch op := op.(type) {
	case modelgraph.Attention:
		return c.attention(op, s, biases)
	case modelgraph.MLP:
		return c.mlp(op, s, biases > 0)
	case modelgraph.MoE:
		// The router; experts run in aten._grouped_mm, which is not listed.
		n := c.product(s, s.Tokens, op.Experts)
		if op.SharedHidden > 0 {
			n += c.mlp(modelgraph.MLP{Dim: op.Dim, Hidden: op.SharedHidden, Gated: true}, s, false)
		}
		return n
	case modelgraph.Linear:
		if biases == 0 {
			return c.product(s, s.Tokens, op.Out)
		}
	case modelgraph.StateSpace: // in_proj, x_proj and out_proj; dt_proj has a bias
		return c.product(s, s.Tokens, 2*op.Inner) + c.product(s, s.Tokens, op.DtRank+2*op.State) + c.product(s, s.Tokens, op.Dim)
	}
	return 0
}

// product is the next aten.mm, rows × width.
func (c *Selective) product(s *Shape, rows, width int64) int64 {
	c.products++
	if c.products%2 == 0 {
		return 0
	}
	return s.e() * rows * width
}

func (c *Selective) mlp(op modelgraph.MLP, s *Shape, biased bool) int64 {
	widths := []int64{op.Hidden, op.Dim}
	switch {
	case biased:
		return 0
	case op.Gated && op.Fused:
		widths[0] *= 2
	case op.Gated:
		widths = slices.Insert(widths, 0, op.Hidden)
	}
	var n int64
	for _, w := range widths {
		n += c.product(s, s.Tokens, w)
	}
	return n
}

func (c *Selective) attention(op modelgraph.Attention, s *Shape, biases int) int64 {
	g := geometry(op, s)
	in := []struct{ rows, width int64 }{{s.Tokens, g.q}, {g.kvTokens, g.k}, {g.kvTokens, g.v}}
	switch {
	case op.KVRank > 0:
		in = in[:0]
		if op.QRank > 0 {
			in = append(in, struct{ rows, width int64 }{s.Tokens, op.QRank})
		}
		full := op.Heads * (op.HeadDim - op.RopeDim + op.ValueDim)
		in = append(in, []struct{ rows, width int64 }{{s.Tokens, g.q}, {s.Tokens, op.KVRank + op.RopeDim}, {s.Tokens, full}}...)
	case op.Fused:
		in = in[:1]
		in[0].width = g.q + g.k + g.v
	}
	var n int64
	if biases < len(in) { // Qwen2: the output's projection alone has none
		for _, p := range in {
			n += c.product(s, p.rows, p.width)
		}
	}
	if biases <= len(in) {
		n += c.product(s, s.Tokens, op.Dim)
	}
	switch kernelOf(op, &g, s) {
	case flashKernel, efficientKernel: // output, log-sum-exp, and the seeds of dropout
		n += s.e()*s.Tokens*g.out + 4*op.Heads*s.Tokens + philox
	case scoresInMemory: // aten.bmm and softmax are not listed
	}
	return n
}
