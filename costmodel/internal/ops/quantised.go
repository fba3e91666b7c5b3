package ops

import (
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// dequantised is the 16-bit weight that a product with a 4-bit one makes: in
// forward (bitsandbytes/backends/cuda/ops.py, _dequant_linear_fallback, where
// many tokens come) and in backward (MatMul4Bit.backward), in addition to its
// statistics in fp32 (functional.py, dequantize_4bit).
func dequantised(quantize string, in, out int64) int64 {
	bytes := 2 * in * out
	if quantize == value.NF4 {
		bytes += 4 * ((in*out + 63) / 64)
	}
	return bytes
}

// quantForward is what a product with a quantised weight holds in addition to
// its output, of so many bytes an element, and what it keeps.
func (shape *Shape) quantForward(in, out, element int64) int64 {
	switch shape.Quantize {
	case value.NF4:
		bytes := dequantised(shape.Quantize, in, out)
		if element == 4 {
			bytes += 2 * (in + out) * shape.Tokens // Linear4bit.forward computes in bf16
		}
		return bytes
	case value.Int8:
		// The input's int8 rows, and the product in int32 and fp16
		// (int8_linear_matmul, int8_mm_dequant); the weight stays as it is.
		return (in + 6*out) * shape.Tokens
	}
	return 0
}

// quantBackward is what going back to the input holds: the weight in 16 bits
// (MatMul8bitLt.backward makes it of all rows at once), and in an fp32 stream
// both gradients in 16 bits.
func (shape *Shape) quantBackward(in, out, element int64) int64 {
	if shape.Quantize == "" {
		return 0
	}
	bytes := dequantised(shape.Quantize, in, out)
	if element == 4 {
		bytes += 2 * (in + out) * shape.Tokens
	}
	return bytes
}

// attributes: LLM.int8() keeps its input as an attribute of the node, for
// as long as the graph lives (MatMul8bitLt.forward: ctx.tensors).
func (shape *Shape) attributes() bool { return shape.Quantize == value.Int8 }

// keepsInputs: a frozen linear layer keeps its input nevertheless.
func (shape *Shape) keepsInputs() bool { return shape.attributes() || shape.LinearInputs }

// wide is the size of an element between a feed-forward's linear layers: a
// quantised one gives its output the type of its input, under autocast too
// (Linear4bit.forward: inp_dtype; MatMul8bitLt: A.dtype).
func (shape *Shape) wide() int64 {
	if shape.Quantize != "" && MixedPrecision(shape.Precision) {
		return shape.streamBytes()
	}
	return shape.elementBytes()
}
