package ops

import (
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// windowed reports a layer with a mask for its sliding window. A sequence that exactly fills the
// window has one too, although it hides nothing. The condition is kv_length >= local_attention_size
// (transformers/masking_utils.py, _ignore_causal_mask_sdpa). The flash-attn package takes the
// window as a number (flash_attention_mask).
func (op attention) windowed(shape *Shape) bool {
	return op.Window > 0 && shape.Length >= op.Window && !op.Packed && !op.Cross && shape.Attention != value.FlashAttention
}

// masked reports a layer with more than a causal mask: for its window, for padding, or for
// documents in a row. The flash-attn package takes bounds instead.
func (op attention) masked(shape *Shape) bool {
	return op.windowed(shape) || shape.Masked && !op.Cross && shape.Attention != value.FlashAttention
}

// maskBytes returns the bytes of a layer's mask on a GPU without the embedding. AlignDevicesHook
// copies it for the call. SDPA takes a boolean mask, and at::where makes a bias from it. The eager
// function takes a mask of the compute type, for all text layers (eager_mask).
func (op attention) maskBytes(dims *geo, shape *Shape) int64 {
	switch {
	case op.Bidirectional || op.Cross || hasBias(&op, shape): // the bias includes it
		return 0
	case op.written(shape):
		return shape.elementBytes() * shape.Tokens * shape.Length
	case dims.masked > 0:
		return shape.Tokens * shape.Length
	}
	return 0
}

// MaskSaved returns the bytes of an attention's mask that checkpoints keep until backward, on the
// embedding's GPU. All layers of one kind share it (GradientCheckpointingLayer: a partial with the
// block's arguments). The boolean mask has one sequence, expanded to the batch without a copy
// (masking_utils.py, sdpa_mask: expand). eager_mask's torch.where writes the whole mask. kind is
// true for a windowed mask.
func MaskSaved(layer modelgraph.Attention, shape *Shape) (size int64, kind bool) {
	op := attention{Attention: layer}
	if op.Bidirectional && op.Window == 0 || op.Packed || op.Cross || shape.Tokens == 0 || hasBias(&op, shape) {
		return 0, false
	}
	switch {
	case op.written(shape):
		return shape.elementBytes() * shape.Tokens * shape.Length, op.Window > 0
	case shape.MaskGiven && op.masked(shape):
		return shape.elementBytes() * shape.Tokens * shape.Length, false
	case op.masked(shape) && shape.Masked: // padding and documents differ by row
		return shape.Tokens * shape.Length, op.Window > 0
	case op.windowed(shape):
		return shape.Length * shape.Length, true
	}
	return 0, false
}

// Weights returns the bytes of the eager function's result. A variable keeps it until the block's
// forward returns (hidden_states, _ = self.self_attn(…)).
func Weights(layer modelgraph.Op, shape *Shape) int64 {
	op, ok := operationOf(layer).(attention)
	if !ok || !op.written(shape) || shape.Train || hasBias(&op, shape) || op.Unreturned {
		return 0
	}
	dims := op.geometry(shape)
	result, cast := op.scoreTypes(shape)
	if cast > 0 {
		result = cast
	}
	return result * dims.scores
}

// written reports the eager function of the modeling code, which adds the mask to its scores.
func (op attention) written(shape *Shape) bool {
	return op.Eager || shape.Attention == value.EagerAttention
}

// hasBias reports T5's bias under SDPA in 16 bits.
func hasBias(op *attention, shape *Shape) bool {
	return sdpaBias(op, shape) && shape.elementBytes() < 4
}

// sdpaBias reports T5's bias under SDPA.
func sdpaBias(op *attention, shape *Shape) bool {
	return op.Unfused && op.ScoreBias == "relative" && shape.Attention == ""
}

// addsBias reports T5's bias as a variable of its stack's forward: under SDPA, and in the
// eager function, which adds it to the scores.
func addsBias(op *attention, shape *Shape) bool {
	eager := op.ScoreBias == "relative" && shape.Attention == value.EagerAttention && !MixedPrecision(shape.Precision)
	return sdpaBias(op, shape) || eager
}

// eagerBias returns the bytes of T5's bias in a decoder's training step. Backward does not need it.
// T5Stack.forward keeps it until it returns, with the zero bias of attention to the encoder.
func eagerBias(asked operation, shape *Shape) int64 {
	op, ok := asked.(attention)
	if !ok || shape.Recompute || op.Bidirectional || !op.BiasMade || op.BiasOwn || !addsBias(&op, shape) || hasBias(&op, shape) {
		return 0
	}
	return biasBytes(&op, shape)
}

// biasBytes returns the bytes of T5's bias on the scores of one sequence (modeling_t5.py,
// compute_bias). The bias of cross-attention is zeros.
func biasBytes(op *attention, shape *Shape) int64 {
	keys := shape.Length
	if op.Cross {
		keys = shape.Encoder / max(1, shape.Batch)
	}
	return shape.elementBytes() * op.Heads * shape.Length * keys
}

// BiasRetained returns the bytes of the bias that the checkpoint of each layer keeps.
func BiasRetained(layer modelgraph.Op, shape *Shape) int64 {
	op, ok := operationOf(layer).(attention)
	if !ok || !op.BiasMade || op.BiasOwn || shape.Tokens == 0 || !addsBias(&op, shape) {
		return 0
	}
	return biasBytes(&op, shape)
}

// biasSaved returns the bytes that T5's bias keeps for backward: indices into its table, zeros, and
// the condition of the causal mask's torch.where (sdpa_attention.py).
func biasSaved(op *attention, shape *Shape) (bytes int64) {
	if op.BiasMade && op.Cross {
		return biasBytes(op, shape)
	}
	if op.BiasMade {
		bytes = 8 * shape.Length * shape.Length
	}
	if !op.Bidirectional && !op.Cross {
		bytes += shape.Length * shape.Length
	}
	return bytes
}

// crossBiasSaved returns the bytes that the bias of attention to an encoder keeps.
func crossBiasSaved(op *attention, shape *Shape) int64 {
	if !op.Cross || !sdpaBias(op, shape) {
		return 0
	}
	return biasSaved(op, shape)
}
