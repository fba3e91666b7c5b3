package ops

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// attention is an attention block; [latentAttention] is one with latents.
type attention struct {
	plain
	modelgraph.Attention
}

// cost follows modeling_llama.py LlamaAttention: q and k after rotation, v, the output, and the
// tensors that the kernel keeps ([kernelSaved]).
func (op attention) cost(shape *Shape) Cost {
	dims := op.geometry(shape)
	element, tokens := shape.elementBytes(), shape.Tokens
	cost := Cost{Known: true, Output: shape.streamBytes() * op.Dim * tokens}
	cost.FLOPs = dims.flops
	cost.Memory.Saved = op.kernelSaved(&dims, shape)
	cost.Memory.Saved += normsSaved(&op, &dims, shape)
	if shape.Compiled && !op.Eager && !op.Cross && dims.masked == 0 {
		// With a mask, SDPA receives repeated keys and values (sdpa_attention.py, use_gqa_in_sdpa).
		cost.Memory.Saved += element * dims.kvTokens * (dims.q - dims.k + dims.out - dims.v)
	}
	cost.copied(op, &dims, shape)
	if op.Gated {
		gate := op.Heads * op.HeadDim
		cost.Memory.Saved += 2 * element * tokens * gate // the sigmoid's result, and the product
		cost.FLOPs += 2 * float64(tokens) * float64(op.in()) * float64(gate)
	}
	if op.LayerScale {
		cost.Memory.Saved += shape.elementBytes() * op.Dim * tokens // the projection's output, for the vector's gradient
	}
	if op.Dropout {
		cost.Memory.Saved += op.Dim * tokens // native_dropout's mask, one byte per element
	}
	inputs := int64(3)
	if op.Fused || shape.Compiled {
		inputs = 1
	}
	// Biases and the norms of q and k are cast too, but not kept.
	cost.Casts = shape.casts(0, 0, op.in()*(dims.q+dims.made(op))+op.Dim*dims.out)
	if shape.Float8.First {
		cost.Casts = shape.plainCasts(0, 0, op.in()*dims.q)
	}
	cost.Memory.Saved += shape.casts(inputs, op.in(), 0) + cost.Casts
	addCache(&cost, &op, &dims, shape)
	cost.attentionPeaks(op, dims, shape)
	return cost
}

// addCache adds the cache of a decoder, and a bias that its layers share as a variable of the
// decoder's forward.
func addCache(cost *Cost, op *attention, dims *geo, shape *Shape) {
	if op.Bidirectional || op.Uncached || op.SharedKV {
		return
	}
	cost.cache(*dims, dims.k, dims.v, shape)
	if op.BiasMade && !op.BiasOwn && addsBias(op, shape) {
		cost.Memory.UntilBodyEnd = biasBytes(op, shape)
	}
}

// oneNorm reports norms of q and k that are one kernel, which keeps its input. Cohere's norm is
// Python operations in fp32 (modeling_cohere.py, CohereLayerNorm).
func oneNorm(op *attention) bool {
	return op.QKNorm == modelgraph.LayerNorm && !op.CastRotation
}

// normsSaved returns the bytes that the norms of q and k keep: an fp32 input and the normalized
// tensor.
func normsSaved(op *attention, dims *geo, shape *Shape) int64 {
	normed, keys := shape.elementBytes(), dims.k
	switch {
	case op.QKNorm == "":
		return 0
	case shape.OneKernel, shape.Modules == Torchtitan, oneNorm(op): // the projections' outputs, without casts
		normed -= 4
	case op.QKNorm == modelgraph.GemmaRMSNorm || op.QKNormFP32:
		normed = 4 // (1 + weight) multiplies in fp32
	}
	if op.SharedKV {
		keys = 0
	}
	switch {
	case oneNorm(op) && MixedPrecision(shape.Precision) && shape.Train: // autocast's fp32 copy of the input
		normed = 0
	case oneNorm(op) && op.Fused && op.Rope: // the input is the projection, which v keeps (kernelSaved)
		normed = -4
	}
	values := int64(0) // v in fp32, before its norm
	if op.ValueNorm && !op.SharedKV {
		values = 4 * shape.Tokens * dims.v
	}
	return (4+normed)*shape.Tokens*(dims.q+keys) + values + 4*shape.Tokens*op.normRows()
}

// normedQ is the most that the norm of q makes, before k: what it reads, that in fp32, and
// the product with 1/σ (modeling_qwen3.py, Qwen3RMSNorm.forward).
func normedQ(op *attention, dims *geo, shape *Shape) int64 {
	if op.QKNorm == "" || shape.OneKernel || shape.Modules == Torchtitan || oneNorm(op) {
		return 0
	}
	return (shape.elementBytes() + 8) * shape.Tokens * dims.q
}

// copied are the arguments that the hook copies for the call: the rotation's,
// which stay for backward, and the mask.
func (cost *Cost) copied(op attention, dims *geo, shape *Shape) {
	if !shape.RotaryCopies || op.Packed {
		return
	}
	if op.Rope {
		// cos and sin are copied for each layer on every GPU except the rotary's
		// (AlignDevicesHook).
		rows := shape.Length
		if op.RopeRows || shape.Positions {
			rows = shape.Tokens
		}
		cost.Memory.Saved += 2 * shape.streamBytes() * rows * op.HeadDim
		cost.Arguments = 2 * shape.streamBytes() * rows * op.HeadDim
		if shape.Cache > shape.Length && !op.Bidirectional && !op.RopeRows {
			// generate() makes position_ids from the mask, one row per sequence
			// (prepare_inputs_for_generation), and cosines and sines from them.
			cost.Arguments *= shape.Batch
		}
	}
	if dims.by != flashKernel {
		cost.Arguments += op.maskBytes(dims, shape)
	}
}

// cache adds the KV cache of the prompt and its growth. In torch.cat the new keys or values exist
// in addition to the old ones (cache_utils.py DynamicLayer.update). k and v are elements per token.
func (cost *Cost) cache(dims geo, k, v int64, shape *Shape) {
	token := (k + v) * shape.elementBytes()
	cost.Memory.KV, cost.Memory.CacheGrowth = dims.prompt*token, (dims.cached-dims.prompt)*token
	if shape.Cache > shape.Length {
		cost.Memory.HeadPeak = dims.cached * max(k, v) * shape.elementBytes()
	}
}

func (cost *Cost) attentionPeaks(op attention, dims geo, shape *Shape) {
	element, tokens := shape.elementBytes(), shape.Tokens
	stream := shape.streamBytes() * op.Dim * tokens
	// Rotation needs q's product, its rotated half and the half's product in addition to q, k and
	// v. The kernel needs its output instead.
	rope := turnedBy(&op, &dims, shape)
	if !shape.Train { // the cache grows, and the output comes, after the rotation
		cost.Memory.Forward = stream + element*tokens*op.Dim + max(element*tokens*dims.q+element*dims.kvTokens*(dims.k+dims.v)+rope, normedQ(&op, &dims, shape))
		rope = 0
	}
	work := element*tokens*dims.q + element*dims.kvTokens*(dims.k+dims.v) + max(rope, element*tokens*(dims.out+op.Dim)+shape.reduced(op.Dim))
	switch dims.by {
	case efficientKernel:
		work += dims.masked * element
	case scoresInMemory:
		work += dims.repeated*element + dims.scores*(6+element)
	case flashKernel:
	}
	if shape.Train {
		work = max(work, cost.Memory.Saved+max(element*tokens*op.Dim+shape.reduced(op.Dim), op.kernelForward(&dims, shape)))
	}
	if !shape.Train && !op.Fused { // the cache's keys and values replace the projections'
		work -= stream + min(cost.Memory.KV, element*dims.kvTokens*(dims.k+dims.v))
	}
	cost.Memory.Forward = max(cost.Memory.Forward, 2*stream+element*tokens*op.Dim+work+cost.Memory.KV)
	if !shape.Train {
		scoresInferred(cost, op, &dims, shape)
		return
	}
	back := op.kernelBackward(&dims, shape)
	if shape.Parallel {
		back += element * tokens * op.in()
	}
	if op.Dropout { // its mask is freed
		back -= op.Dim * tokens
	}
	cost.back = back
	cost.peak(
		backwardPoint{stream + back, min(shape.NewGrads, shape.weightBytes()*dims.out*op.Dim), 0},
		// the output's projection, then the queries'
		backwardPoint{stream + element*tokens*dims.out, min(shape.NewGrads, shape.weightBytes()*dims.out*op.Dim), min(shape.NewGrads, shape.weightBytes()*dims.out*op.Dim)},
		// the tensors of the kernel and the norms are freed by then, and autocast's casts except
		// the last gradient's
		backwardPoint{2*stream + element*tokens*(dims.q+op.in()) - op.kernelSaved(&dims, shape) - normsSaved(&op, &dims, shape) - shape.casts(0, 0, op.in()*dims.made(op)+op.Dim*dims.out), shape.NewGrads, min(shape.NewGrads, shape.weightBytes()*dims.q*op.in())},
	)
}

// scoresInferred sets the peak of a forward pass without gradients and with scores in memory.
func scoresInferred(cost *Cost, op attention, dims *geo, shape *Shape) {
	element, tokens := shape.elementBytes(), shape.Tokens
	stream := shape.streamBytes() * op.Dim * tokens
	result, cast := op.scoreTypes(shape)
	switch {
	case inMath(&op, shape):
		cost.Memory.Forward = stream + element*tokens*op.Dim + dims.mathForward(&op, shape) + cost.Memory.KV
	case dims.by == scoresInMemory && !op.written(shape) && element == 4:
		// SDPA's math kernel in fp32 (attention.cpp): rotated and scaled q, repeated keys and
		// values, scores with the mask, softmax, and the mask of −∞ scores.
		turned := element*tokens*(op.Dim+dims.q) + element*dims.kvTokens*(dims.k+dims.v) + turnedBy(&op, dims, shape)
		scored := element*tokens*(op.Dim+2*dims.q) + element*(dims.kvTokens*(dims.k+dims.v)+dims.repeated) + 9*dims.scores
		cost.Memory.Forward = stream + max(turned, scored) + cost.Memory.KV
	case op.OwnScores && op.Bidirectional && dims.by == scoresInMemory: // scores and softmax's result
		cost.Memory.Forward = stream + element*tokens*(op.Dim+dims.q) + element*dims.kvTokens*(dims.k+dims.v) + 2*element*dims.scores + unreturned(&op, dims, shape)
	case op.FP32Scores && dims.by == scoresInMemory && element < 4:
		cost.Memory.Forward = stream + element*tokens*op.Dim + forwardOfCasts(&op, dims, shape) + cost.Memory.KV
	case dims.by == scoresInMemory && op.written(shape) && cast > 0 && !MixedPrecision(shape.Precision):
		// Softmax in addition to the scores, and the scores in its type (Softmax.cpp, softmax:
		// toType, except for fp16); no output yet.
		softmax := (cast+2*result)*dims.scores + dims.repeated*element
		softmax += op.ExtraScores * element * dims.scores
		softmax += copiedValues(&op, dims, shape)
		cost.Memory.Forward = max(cost.Memory.Forward, stream+element*tokens*(op.Dim+dims.q)+element*dims.kvTokens*(dims.k+dims.v)+softmax+cost.Memory.KV)
	}
}

// unreturned returns the bytes of the product with v and its copy, if the function does not return
// the weights. Its variables keep scores and weights until it returns.
func unreturned(op *attention, dims *geo, shape *Shape) int64 {
	if !op.Unreturned {
		return 0
	}
	return 2 * shape.elementBytes() * shape.Tokens * dims.out
}

// copiedValues returns the bytes of a copy of v made by a reshape (modeling_bloom.py).
func copiedValues(op *attention, dims *geo, shape *Shape) int64 {
	if op.ScoreBias == "alibi" && op.ExtraScores > 1 {
		return shape.elementBytes() * shape.Tokens * dims.q
	}
	return 0
}

// turnedBy returns the most bytes that rotation needs in addition to the projections' outputs.
func turnedBy(op *attention, dims *geo, shape *Shape) int64 {
	element, q, k := shape.elementBytes(), shape.Tokens*dims.q, shape.Tokens*dims.k
	switch {
	case !op.Rope:
		return 0
	case op.CastRotation && op.Fused: // one after the other: the cast, its product, its halves, one of them negated (modeling_modernbert.py)
		return 4*q + 14*k
	case op.CastRotation: // both casts, what turned, and a factor, its half turned, and that one's product
		return 4 * max(2*q+4*k, 4*q+k)
	case op.FP32Rotation: // both products, and their sum
		return 4 * max(3*q, q+3*k)
	case op.Turning > 0: // both with the part that turned, before that goes
		return element * (q + k + (q+k)*op.Turning/max(1, op.HeadDim))
	}
	return element * max(3*q, q+3*k) // apply_rotary_pos_emb rotates q, then k
}

// geo has attention's widths and counts.
type geo struct {
	q, k, v, out int64 // widths of q, k, v and the output, all heads
	kvTokens     int64 // tokens of k and v
	// prompt is the tokens in the KV caches after the prompt, cached after the last token. A
	// window's cache is a view of the prompt's whole keys and values until the first new token
	// shortens it (cache_utils.py, DynamicSlidingWindowLayer.update: torch.cat, then a slice).
	prompt, cached int64
	scores         int64 // elements of the score matrix
	// masked is the elements that a sliding window costs if the sequence fills it. SDPA with a mask
	// receives repeated keys and values (sdpa_attention.py: use_gqa_in_sdpa). In each layer,
	// at::where makes a bias [batch, length, length] from the boolean mask (attention.cpp:
	// convert_boolean_attn_mask).
	masked int64
	// repeated is the elements of repeated keys and values beyond those of the KV heads
	// (repeat_kv).
	repeated int64
	by       attentionKernel
	flops    float64
	kernel   float64 // the part of flops for queries, keys and values
}

// decomposed is a bias on the scores of each head that SDPA receives as its mask (modeling_sam.py,
// SamVisionSdpaAttention).
const decomposed = "decomposed"

func (op attention) geometry(shape *Shape) geo {
	vd := op.ValueDim
	if vd == 0 {
		vd = op.HeadDim
	}
	dims := geo{
		q: op.Heads * op.HeadDim, k: op.KVHeads * op.HeadDim, v: op.KVHeads * vd,
		out: op.Heads * vd, kvTokens: shape.Tokens,
	}
	length, cached := shape.Length, shape.Cache
	dims.masked = op.maskOf(&dims, shape)
	if op.Cross {
		dims.kvTokens = shape.Encoder
		length = shape.Encoder / max(1, shape.Batch)
		cached = length
	}
	full := length
	dims.repeated = dims.kvTokens * (dims.q + dims.out - dims.k - dims.v)
	if op.Window > 0 {
		length, cached = min(length, op.Window), min(cached, op.Window)
	}
	switch padded := (length + 15) / 16 * 16; op.ScoreBias { // SDPA pads a bias's last side (sdp_utils, pad_bias)
	case decomposed:
		dims.masked = op.Heads * shape.Tokens * length
	case "windows":
		dims.masked = op.Heads * length * padded
	case "shifted":
		dims.masked = op.Heads * shape.Tokens * padded
	}
	dims.prompt, dims.cached = shape.Batch*full, shape.Batch*cached
	if shape.Cache <= shape.Length {
		dims.cached = dims.prompt
	}
	dims.scores = op.Heads * shape.Tokens * length
	dims.kernel = 2 * float64(shape.Tokens) * keysSeen(&op, shape, length) * float64(dims.q+dims.out)
	dims.flops = 2*float64(shape.Tokens)*(float64(op.in())*float64(dims.q)+float64(op.Dim)*float64(dims.out)) +
		2*float64(dims.kvTokens)*float64(op.in())*float64(dims.made(op)) +
		dims.kernel
	if dims.by = op.kernelOf(&dims, shape); dims.by == scoresInMemory && (!op.Packed || !op.Eager && op.ScoreBias != decomposed) {
		dims.scores = op.Heads * shape.Tokens * full // a window masks scores, and saves no memory
	}
	return dims
}

// keysSeen returns the number of keys, out of length, that a query is multiplied with.
func keysSeen(op *attention, shape *Shape, length int64) float64 {
	seen := float64(length)
	if shape.Documents > 0 && !op.masked(shape) && !op.Cross {
		seen = min(seen, float64(shape.Tokens)/float64(shape.Documents)) // each document attends only to itself
	}
	if !op.Bidirectional && !op.Cross && op.Window == 0 {
		seen /= 2 // the causal half
	}
	return seen
}

// maskOf returns the elements of a mask for windows, images or an indexer, with the repeated keys
// and values that it requires.
func (op attention) maskOf(dims *geo, shape *Shape) int64 {
	switch {
	case max(op.HeadDim, dims.out/max(1, op.Heads)) > 256 && !op.written(shape) && !op.masked(shape) && !op.Cross:
		return shape.Tokens * max(0, dims.q+dims.out-dims.k-dims.v) // no kernel takes these and unequal heads (use_gqa_in_sdpa)
	case op.IndexHeads > 0 && shape.Attention != value.FlashAttention:
		return shape.Tokens * shape.Length // the mask of the indexer
	case op.masked(shape) && shape.MaskGiven: // all layers read the caller's mask
		return shape.Tokens * (dims.q + dims.out - dims.k - dims.v)
	case op.masked(shape) || op.ImageMask && shape.Images && shape.Attention != value.FlashAttention:
		return shape.Tokens*(dims.q+dims.out-dims.k-dims.v) + shape.Tokens*shape.Length
	}
	return 0
}

// in returns the input width of q, k and v.
func (op attention) in() int64 { return cmp.Or(op.InDim, op.Dim) }

// made returns the width of the keys and values that the layer computes itself.
func (dims *geo) made(op attention) int64 {
	if op.SharedKV {
		return 0
	}
	return dims.k + dims.v
}

// normRows returns how many values of 1/σ the norms of q and k keep per token.
func (op attention) normRows() int64 {
	if op.QKNormWhole {
		return 2
	}
	return op.Heads + op.KVHeads
}
