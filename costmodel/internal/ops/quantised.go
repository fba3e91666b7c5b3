package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// dequantised is the 16-bit weight that a product with a 4-bit one makes: in
// forward (bitsandbytes/backends/cuda/ops.py, _dequant_linear_fallback, where
// many tokens come) and in backward (MatMul4Bit.backward), beside its
// statistics in fp32 (functional.py, dequantize_4bit).
func dequantised(q costmodel.Quantize, in, out int64) int64 {
	n := 2 * in * out
	if q == costmodel.NF4 {
		n += 4 * ((in*out + 63) / 64)
	}
	return n
}

// quantForward is what a product with a quantised weight holds beside its
// output, of e bytes an element, and what it keeps.
func (s *Shape) quantForward(in, out, e int64) int64 {
	switch s.Quantize {
	case costmodel.NF4:
		n := dequantised(s.Quantize, in, out)
		if e == 4 {
			n += 2 * (in + out) * s.Tokens // Linear4bit.forward computes in bf16
		}
		return n
	case costmodel.Int8:
		// The input's int8 rows, and the product in int32 and fp16
		// (int8_linear_matmul, int8_mm_dequant); the weight stays as it is.
		return (in + 6*out) * s.Tokens
	}
	return 0
}

// quantBackward is what going back to the input holds: the weight in 16 bits
// (MatMul8bitLt.backward makes it of all rows at once), and in an fp32 stream
// both gradients in 16 bits.
func (s *Shape) quantBackward(in, out, e int64) int64 {
	if s.Quantize == "" {
		return 0
	}
	n := dequantised(s.Quantize, in, out)
	if e == 4 {
		n += 2 * (in + out) * s.Tokens
	}
	return n
}

// keepsInputs: LLM.int8() keeps its input as an attribute of the node, for
// as long as the graph lives (MatMul8bitLt.forward: ctx.tensors).
func (s *Shape) keepsInputs() bool { return s.Quantize == costmodel.Int8 }

// inputsStay are the inputs that 8-bit linear layers keep past a checkpoint:
// its hooks see saved tensors alone, and these are attributes of the nodes.
func (s *Shape) inputsStay(op modelgraph.Op) int64 {
	if !s.keepsInputs() || !s.Recompute || !s.InputGrad {
		return 0
	}
	switch op := op.(type) {
	case modelgraph.Attention:
		return s.Tokens * (s.r()*op.Dim + s.e()*op.Heads*max(op.HeadDim, op.ValueDim))
	case modelgraph.MLP:
		return s.Tokens * (s.r()*op.Dim + s.wide()*op.Hidden)
	}
	return 0
}

// wide is the size of an element between a feed-forward's linear layers: a
// quantised one gives its output the type of its input, under autocast too
// (Linear4bit.forward: inp_dtype; MatMul8bitLt: A.dtype).
func (s *Shape) wide() int64 {
	if s.Quantize != "" && s.Precision.Mixed() {
		return s.r()
	}
	return s.e()
}

// quantInfer is what the quantised products of an op hold at most in a
// forward without backward, above the op's input and residual stream.
func (s *Shape) quantInfer(op modelgraph.Op) int64 {
	if s.Quantize == "" {
		return 0
	}
	n := s.Tokens
	switch op := op.(type) {
	case modelgraph.Attention:
		q := op.Heads * op.HeadDim
		return s.e()*n*(q+2*op.KVHeads*op.HeadDim) + s.quantForward(op.Dim, q, s.e())
	case modelgraph.MLP:
		fN := s.wide() * op.Hidden * n
		return max(2*fN+s.quantForward(op.Dim, op.Hidden, s.wide()), fN+s.wide()*op.Dim*n+s.quantForward(op.Hidden, op.Dim, s.wide()))
	}
	return 0
}
