package ops

import (
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// windowed reports that the layer is called with a mask for its sliding
// window: a sequence that just fills the window has one, though it hides
// nothing (transformers/masking_utils.py, _ignore_causal_mask_sdpa: kv_length
// >= local_attention_size). The flash-attn package takes the window as a
// number instead (flash_attention_mask).
func (op attention) windowed(shape *Shape) bool {
	return op.Window > 0 && shape.Length >= op.Window && !op.Packed && !op.Cross && shape.Attention != value.FlashAttention
}

// masked reports that the layer is called with more than a causal mask: for its
// window, for padding or for documents in a row. The flash-attn package takes
// bounds instead.
func (op attention) masked(shape *Shape) bool {
	return op.windowed(shape) || shape.Masked && !op.Cross && shape.Attention != value.FlashAttention
}

// maskBytes is the mask of a layer on another GPU than the embedding's. AlignDevicesHook
// copies it for the call. SDPA takes a boolean mask, and at::where makes a bias of it. The
// eager function takes one of the compute's type, for all layers of text (eager_mask).
func (op attention) maskBytes(dims *geo, shape *Shape) int64 {
	switch {
	case op.Bidirectional || op.Cross || hasBias(&op, shape): // it joins the bias
		return 0
	case op.written(shape):
		return shape.elementBytes() * shape.Tokens * shape.Length
	case dims.masked > 0:
		return shape.Tokens * shape.Length
	}
	return 0
}

// MaskSaved is what checkpoints keep of an attention's mask until backward, on
// the embedding's GPU, where all layers of its kind share it
// (GradientCheckpointingLayer: a partial with the block's arguments). The
// boolean mask is of one sequence and only looks like the batch
// (masking_utils.py, sdpa_mask: expand); eager_mask's torch.where writes all of
// it. windowed distinguishes the two kinds.
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
	case op.masked(shape) && shape.Masked: // padding and documents differ from row to row
		return shape.Tokens * shape.Length, op.Window > 0
	case op.windowed(shape):
		return shape.Length * shape.Length, true
	}
	return 0, false
}

// Weights are what the eager function returns, which a variable holds until the block's
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

// written reports the eager function of the modelling code, which adds the
// mask to its scores.
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

// eagerBias is that variable in a decoder's training step: nothing keeps it for backward,
// and T5Stack.forward holds it, with the zeros of attention to the encoder, until it returns.
func eagerBias(asked operation, shape *Shape) int64 {
	op, ok := asked.(attention)
	if !ok || shape.Recompute || op.Bidirectional || !op.BiasMade || op.BiasOwn || !addsBias(&op, shape) || hasBias(&op, shape) {
		return 0
	}
	return biasBytes(&op, shape)
}

// biasBytes is T5's bias on the scores, of one sequence (modeling_t5.py, compute_bias; of
// cross-attention zeros).
func biasBytes(op *attention, shape *Shape) int64 {
	keys := shape.Length
	if op.Cross {
		keys = shape.Encoder / max(1, shape.Batch)
	}
	return shape.elementBytes() * op.Heads * shape.Length * keys
}

// BiasRetained is the bias that a checkpoint of each layer keeps.
func BiasRetained(layer modelgraph.Op, shape *Shape) int64 {
	op, ok := operationOf(layer).(attention)
	if !ok || !op.BiasMade || op.BiasOwn || shape.Tokens == 0 || !addsBias(&op, shape) {
		return 0
	}
	return biasBytes(&op, shape)
}

// biasSaved is what it keeps for backward: the buckets that the table was read by, the
// zeros, and where the causal mask is (sdpa_attention.py: torch.where).
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

// crossBiasSaved is what the bias of attention to an encoder keeps.
func crossBiasSaved(op *attention, shape *Shape) int64 {
	if !op.Cross || !sdpaBias(op, shape) {
		return 0
	}
	return biasSaved(op, shape)
}
