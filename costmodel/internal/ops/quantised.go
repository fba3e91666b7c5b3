package ops

import (
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// dequantised returns the bytes of the 16-bit weight made for a product with a 4-bit weight, and
// its fp32 statistics (functional.py, dequantize_4bit). Forward makes it for many tokens
// (bitsandbytes/backends/cuda/ops.py, _dequant_linear_fallback), and backward always
// (MatMul4Bit.backward).
func dequantised(quantize string, in, out int64) int64 {
	bytes := 2 * in * out
	if quantize == value.NF4 {
		bytes += 4 * ((in*out + 63) / 64)
	}
	return bytes
}

// quantForward returns the bytes that a product with a quantized weight needs in addition to its
// output and the tensors it keeps. element is the output's bytes per element.
func (shape *Shape) quantForward(in, out, element int64) int64 {
	switch shape.Quantize {
	case value.NF4:
		bytes := dequantised(shape.Quantize, in, out)
		if element == 4 {
			bytes += 2 * (in + out) * shape.Tokens // Linear4bit.forward computes in bf16
		}
		return bytes
	case value.Int8:
		// The input's int8 rows, and the product in int32 and fp16 (int8_linear_matmul,
		// int8_mm_dequant). The weight is not converted.
		return (in + 6*out) * shape.Tokens
	}
	return 0
}

// quantBackward returns the bytes that the input's gradient needs: the weight in 16 bits, as
// MatMul8bitLt.backward converts all rows at once. For an fp32 stream, both gradients in 16 bits
// are added.
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

// attributes reports LLM.int8(), which keeps its input as an attribute of the node as long as the
// graph lives (MatMul8bitLt.forward: ctx.tensors).
func (shape *Shape) attributes() bool { return shape.Quantize == value.Int8 }

// keepsInputs reports that frozen linear layers keep their inputs.
func (shape *Shape) keepsInputs() bool { return shape.attributes() || shape.LinearInputs }

// wide returns the bytes per element between a feed-forward's linear layers. A quantized layer's
// output has its input's type, under autocast too (inp_dtype in Linear4bit.forward, A.dtype in
// MatMul8bitLt).
func (shape *Shape) wide() int64 {
	if shape.Quantize != "" && MixedPrecision(shape.Precision) {
		return shape.streamBytes()
	}
	return shape.elementBytes()
}
