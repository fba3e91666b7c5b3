package ops

import (
	"github.com/devmap-dev/devmap/modelgraph"
)

// norm is a normalization.
type norm struct {
	plain
	modelgraph.Norm
}

func (norm) products() bool { return false }

// cost follows three norms:
//
//   - modeling_llama.py LlamaRMSNorm.forward: fp32 copy of the input, normalized tensor cast back, product with the weight
//   - modeling_gemma.py GemmaRMSNorm: all in fp32, one cast at the end
//   - torch.nn.LayerNorm: input, mean and 1/σ.
func (op norm) cost(shape *Shape) Cost {
	if op.Style != modelgraph.LayerNorm && shape.Modules == Torchtitan {
		return op.fused(shape)
	}
	if op.Style == modelgraph.RMSNorm && shape.Modules == Torchtune {
		op.Style = modelgraph.GemmaRMSNorm // all in fp32 (modules/rms_norm.py)
	}
	return op.eager(shape)
}

// eager is the norm in eager mode, one kernel per operation, or as one kernel.
func (op norm) eager(shape *Shape) (cost Cost) {
	hN := op.Dim * shape.Tokens
	cost = Cost{Known: true, FLOPs: 5 * float64(hN), Output: shape.streamBytes() * hN}
	out := shape.elementBytes() * hN // the next linear layer's input
	if op.passes(shape) {
		out = 0 // the head keeps it, on its device, with one cast per linear layer; a post-norm is only added
	}
	if shape.oneKernel(op.Style) {
		cost.oneKernelNorm(shape, hN, out)
		return cost
	}
	defer func() { cost.Memory.Saved += op.more(shape) }()
	if op.Persists {
		cost.Memory.UntilBodyEnd = cost.Output
	}
	switch op.Style {
	case modelgraph.LayerNorm:
		layerNorm(&cost, op, shape, out)
		return cost
	case modelgraph.GemmaRMSNorm:
		cost.Memory.Saved = 8*hN + 4*shape.Tokens + out + 4*op.Dim
	default:
		cost.Memory.Saved = 8*hN + 4*shape.Tokens + out
		if op.narrow(shape) {
			cost.Memory.Saved -= 2 * hN // the normalised tensor is kept in 16 bits
		}
	}
	if shape.Checkpoint && !shape.half() {
		cost.Memory.Saved -= 4 * hN // the input itself, kept by the checkpoint
	}
	// x² exists in addition to the fp32 copy, the input and the residual.
	cost.Memory.Forward = max(cost.Memory.Saved, 8*hN) + shape.streamBytes()*hN
	// pow's backward has five fp32 tensors after one of the saved 8hN is freed, in addition to the
	// residual's gradient.
	residual := shape.streamBytes() * hN
	if op.Style == modelgraph.GemmaRMSNorm || op.FP32 {
		if shape.HeadAlone {
			residual = 0 // the head's gradient is cast and freed
		}
		summed(&cost, op, shape)
	}
	cost.peak(backwardPoint{residual + (20-op.gone(shape))*hN, shape.NewGrads, 0})
	return cost
}

// narrow reports an input in 16 bits, which the normalised tensor is cast back to: of a
// post-norm under autocast, too, after a linear layer.
func (op norm) narrow(shape *Shape) bool {
	return (shape.half() || op.Post && MixedPrecision(shape.Precision)) && !op.FP32
}

// passes reports that nothing keeps the output for the norm: a checkpoint keeps the input
// of its block.
func (op norm) passes(shape *Shape) bool {
	return MixedPrecision(shape.Precision) || op.Post || shape.HeadAlone || op.Persists && shape.Recompute
}

// gone returns the saved bytes per element that are freed in backward: the 16-bit normalized
// tensor, and the output unless no layer keeps it.
func (op norm) gone(shape *Shape) int64 {
	if op.Post && op.Style == modelgraph.RMSNorm && op.narrow(shape) {
		return 2
	}
	return 4
}

// more returns the bytes that the norm keeps in addition: its original input, and a dropout's mask.
func (op norm) more(shape *Shape) (bytes int64) {
	if op.OwnInput && shape.half() {
		bytes = shape.streamBytes() * op.Dim * shape.Tokens
	}
	if op.Dropout {
		bytes += op.Dim * shape.Tokens
	}
	return bytes
}

// summed sets the moment of the weight's gradient in fp32: the gradient, that of the normalized
// tensor, and their product, which is summed over the rows. A checkpoint has freed the normalized
// tensor by then. Recomputed tensors live as long as the node's apply, and the sum comes after that
// (torch/csrc/autograd/engine.cpp, validate_outputs).
func summed(cost *Cost, op norm, shape *Shape) {
	hN := op.Dim * shape.Tokens
	bytes := 12*hN + ReduceBuffer(shape.Tokens, op.Dim)
	if !shape.HeadAlone { // there, the head's gradient is cast and freed
		bytes += shape.streamBytes() * hN
		if shape.Recompute {
			bytes -= 4 * hN
		}
	}
	cost.peak(backwardPoint{bytes, shape.NewGrads, 0})
}

// layerNorm adds F.layer_norm as one kernel, or as its operations.
func layerNorm(cost *Cost, op norm, shape *Shape, out int64) {
	if op.Eager {
		eagerLayerNorm(cost, op, shape, out)
		return
	}
	hN := op.Dim * shape.Tokens
	cost.Memory.Saved = shape.streamBytes()*hN + 8*shape.Tokens + out
	if shape.InputShared || shape.InputSaved {
		cost.Memory.Saved -= shape.streamBytes() * hN
	}
	if op.FP32 && shape.half() { // a copy of the input, the kernel's result, its cast
		cost.Memory.Saved += 2 * hN
		cost.Memory.Forward = 8*hN + 2*shape.streamBytes()*hN
		cost.peak(backwardPoint{shape.streamBytes()*hN + 8*hN, shape.NewGrads, 0})
	}
	cost.Memory.Forward = max(cost.Memory.Forward, cost.Memory.Saved+2*shape.streamBytes()*hN)
	cost.peak(backwardPoint{3 * shape.streamBytes() * hN, shape.NewGrads, 0})
}

// eagerLayerNorm adds CohereLayerNorm.forward: x − mean twice, for the variance and for the result,
// and the result before the weight, all in fp32 (modeling_cohere.py). In backward, pow's gradients
// exist after two of these are freed.
func eagerLayerNorm(cost *Cost, op norm, shape *Shape, out int64) {
	hN := op.Dim * shape.Tokens
	summed(cost, op, shape)
	stream := shape.streamBytes() * hN
	cost.Memory.Saved = 12*hN + 8*shape.Tokens + out
	cost.Memory.Forward = stream + 16*hN
	if !shape.Train {
		cost.Memory.Forward = stream + 12*hN
	}
	cost.peak(backwardPoint{stream + 12*hN, shape.NewGrads, 0})
}

func (shape *Shape) oneKernel(style modelgraph.NormStyle) bool {
	return shape.OneKernel && style != modelgraph.LayerNorm
}

// oneKernelNorm follows liger_kernel/ops/rms_norm.py (liger-kernel 0.8.5). It keeps the original
// input and 1/σ, and the input's gradient overwrites the output's.
func (cost *Cost) oneKernelNorm(shape *Shape, hN, out int64) {
	stream := shape.streamBytes() * hN
	cost.Memory.Saved = stream + 4*shape.Tokens + out
	cost.Memory.Forward = cost.Memory.Saved + 2*stream
	cost.peak(backwardPoint{3 * stream, shape.NewGrads, 0})
}

// freeze keeps the fp32 input and 1/σ; Gemma's (1 + weight) is a constant tensor. The output is
// kept if the linear layers that read it keep it.
func (op norm) freeze(cost *Cost, shape *Shape) {
	hN := op.Dim * shape.Tokens
	cost.Memory.Saved = 4*hN + 4*shape.Tokens + op.more(shape)
	back := shape.streamBytes()*hN + 20*hN // pow's backward has five fp32 tensors
	if shape.HeadAlone {
		back = 20 * hN // no residual; the head's gradient is cast and freed
	}
	switch op.Style {
	case modelgraph.LayerNorm:
		back = op.freezeLayerNorm(cost, shape)
	case modelgraph.GemmaRMSNorm:
		cost.Memory.Saved += 4 * op.Dim
	case modelgraph.RMSNorm:
	}
	if shape.oneKernel(op.Style) {
		cost.Memory.Saved = shape.streamBytes()*hN + 4*shape.Tokens
		back = 3 * shape.streamBytes() * hN
	}
	if shape.InputSaved && !shape.half() {
		cost.Memory.Saved -= 4 * hN // no copy of its own
		back += 4 * hN
	}
	if shape.keepsInputs() && !op.Post && !shape.HeadAlone {
		cost.Memory.Saved += shape.streamBytes() * hN
	}
	cost.peak(backwardPoint{back, 0, 0})
}

// freezeLayerNorm returns the peak bytes of a frozen LayerNorm's backward.
func (op norm) freezeLayerNorm(cost *Cost, shape *Shape) int64 {
	hN := op.Dim * shape.Tokens
	cost.Memory.Saved = shape.streamBytes()*hN + 8*shape.Tokens
	if shape.InputShared && (shape.half() || !shape.InputSaved) {
		cost.Memory.Saved -= shape.streamBytes() * hN
	}
	switch {
	case op.Eager:
		cost.Memory.Saved = 8*hN + 8*shape.Tokens
		return 3*shape.streamBytes()*hN + 12*hN
	case op.FP32 && shape.half():
		cost.Memory.Saved += 2 * hN
		return shape.streamBytes()*hN + 8*hN
	}
	return 3 * shape.streamBytes() * hN
}

func (op norm) slack(shape *Shape) int64 {
	element, tokens := shape.elementBytes(), shape.Tokens
	if op.Style == modelgraph.LayerNorm {
		return 2 * remainder(shape.streamBytes()*op.Dim*tokens)
	}
	return remainder(4*op.Dim*tokens) + 2*remainder(element*op.Dim*tokens)
}

func (op norm) traffic(shape *Shape) (forward, backward moved) {
	traffic, b := normTraffic(op.Style, shape)
	stream := float64(shape.Tokens) * float64(op.Dim)
	return traffic.times(stream), b.times(stream).add(stream*float64(3*shape.streamBytes()), 0) // and the residual's gradient
}

// kernels includes the residual's gradient.
func (op norm) kernels(*Shape, float64) (forward, backward float64) {
	if op.Style == modelgraph.LayerNorm {
		return 1, 3
	}
	return 7, 15
}

func (op norm) bound(*Shape) bound { return bound{width: float64(op.Dim)} }

// normTraffic returns bytes per element. The forward of RMSNorm (modeling_llama.py LlamaRMSNorm)
// casts to fp32, computes pow and mean, multiplies by 1/σ, casts back and multiplies by the weight.
// The backward has the same nodes. There, the product makes two gradients and sums one of them,
// pow's backward runs three kernels, and the fp32 input adds up two gradients.
func normTraffic(style modelgraph.NormStyle, shape *Shape) (forward, backward moved) {
	residual := float64(shape.streamBytes())
	if style == modelgraph.LayerNorm { // one kernel in forward; backward has another for weight and bias
		return moved{flat: 2 * residual}, moved{flat: 5 * residual}
	}
	cast := 0.
	if shape.half() {
		cast = 2 + 4
	}
	const (
		pow, mean, product = 4 + 4, 4, 4 + 4
		meanBack, powBack  = 4, 8 + 8 + 12
		collect            = 12
	)
	weight, weightBack := moved{strided: 2 * residual}, moved{flat: 3 * residual, strided: residual + 2*residual} // the weight's gradient, its sum, and the input's
	if style == modelgraph.GemmaRMSNorm {
		weight, weightBack = moved{strided: 8}, moved{flat: 12, strided: 4 + 8}
	}
	forward = weight.add(pow+cast, cast+mean+product)
	backward = weightBack.add(12+powBack+collect+cast, cast+8+4+meanBack) // the product's gradients: 12 for 1/σ, 8 for x, and a sum
	return forward, backward
}

// fused is torch.nn.RMSNorm in one kernel (torch 2.11, aten _fused_rms_norm), which torchtitan
// uses. It keeps its input and 1/σ.
func (op norm) fused(shape *Shape) Cost {
	hN := shape.streamBytes() * op.Dim * shape.Tokens
	cost := Cost{Known: true, FLOPs: 5 * float64(op.Dim*shape.Tokens), Output: hN}
	cost.Memory.Saved = 4 * shape.Tokens
	if !shape.InputSaved {
		cost.Memory.Saved += hN
	}
	if !shape.HeadAlone {
		cost.Memory.Saved += hN
	}
	cost.Memory.Forward = cost.Memory.Saved + 2*hN
	cost.peak(backwardPoint{3 * hN, shape.NewGrads, 0})
	return cost
}
