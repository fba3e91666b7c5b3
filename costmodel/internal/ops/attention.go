package ops

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// attention follows modeling_llama.py LlamaAttention: q and k after rotation,
// v, the output, and what the kernel keeps ([kernelSaved]).
func attention(op modelgraph.Attention, s *Shape) Cost {
	g := geometry(op, s)
	e, n := s.e(), s.Tokens
	c := Cost{Known: true, Output: s.r() * op.Dim * n}
	c.FLOPs = g.flops
	c.Step.Saved = kernelSaved(op, &g, s)
	if op.QKNorm != "" {
		// fp32 input and 16-bit normalised tensor of q and k.
		normed := e
		if op.QKNorm == modelgraph.GemmaRMSNorm {
			normed = 4 // (1 + weight) multiplies in fp32
		}
		c.Step.Saved += (4+normed)*n*(g.q+g.k) + 4*n*normRows(op)
	}
	c.copied(op, &g, s)
	if op.LayerScale {
		c.Step.Saved += s.r() * op.Dim * n // the projection's output, for the vector's gradient
	}
	if op.Dropout {
		c.Step.Saved += op.Dim * n // native_dropout's mask, a byte an element
	}
	inputs := int64(3)
	if op.Fused {
		inputs = 1
	}
	// Biases and the norms of q and k are cast too, but not kept.
	c.Casts = s.casts(0, 0, op.Dim*(g.q+g.k+g.v+g.out))
	c.Step.Saved += s.casts(inputs, op.Dim, 0) + c.Casts
	if !op.Bidirectional {
		c.cache(g, g.k, g.v, s)
	}
	c.attentionPeaks(op, g, s)
	return c
}

// copied are the arguments that the hook copies for the call: the rotation's,
// which stay for backward, and the mask.
func (c *Cost) copied(op modelgraph.Attention, g *geo, s *Shape) {
	if !s.RotaryCopies || op.Packed {
		return
	}
	if op.Rope {
		// cos and sin arrive as a copy per layer on every GPU but the
		// rotary's (AlignDevicesHook).
		rows := s.Length
		if op.RopeRows {
			rows = s.Tokens
		}
		c.Step.Saved += 2 * s.r() * rows * op.HeadDim
		c.Arguments = 2 * s.r() * rows * op.HeadDim
		if s.Cache > s.Length && !op.Bidirectional && !op.RopeRows {
			// generate() makes position_ids of the mask, a row a sequence
			// (prepare_inputs_for_generation), and cosines and sines of them.
			c.Arguments *= s.Batch
		}
	}
	if g.by != flashKernel {
		c.Arguments += maskBytes(op, g, s)
	}
}

// cache is the KV cache of the prompt, what it grows by, and the new keys or
// values beside the old ones in torch.cat (cache_utils.py DynamicLayer.update),
// with k and v elements a token.
func (c *Cost) cache(g geo, k, v int64, s *Shape) {
	token := (k + v) * s.e()
	c.Step.KV, c.Step.CacheGrowth = g.prompt*token, (g.cached-g.prompt)*token
	if s.Cache > s.Length {
		c.Step.HeadPeak = g.cached * max(k, v) * s.e()
	}
}

func (c *Cost) attentionPeaks(op modelgraph.Attention, g geo, s *Shape) {
	e, n := s.e(), s.Tokens
	stream := s.r() * op.Dim * n
	// Rotation holds q's product, its rotated half and that one's product
	// beside q, k and v; the kernel holds its output instead.
	rope := e * n * (3*g.q + g.k)
	work := e*n*g.q + e*g.kvTokens*(g.k+g.v) + max(rope, e*n*(g.out+op.Dim))
	switch g.by {
	case efficientKernel:
		work += g.masked * e
	case scoresInMemory:
		work += g.repeated*e + g.scores*(6+e)
	case flashKernel:
	}
	if s.Train {
		work = max(work, c.Step.Saved+max(e*n*op.Dim, kernelForward(op, &g, s)))
	}
	c.Step.Forward = 2*stream + e*n*op.Dim + work + c.Step.KV
	if !s.Train {
		if result, cast := scoreTypes(op, s); written(op, s) && cast > 0 && !s.Precision.Mixed() {
			// softmax beside the scores, and those in its type (Softmax.cpp,
			// softmax: toType, but for fp16); no output yet.
			softmax := (cast+2*result)*g.scores + g.repeated*e
			c.Step.Forward = max(c.Step.Forward, stream+e*n*(op.Dim+g.q)+e*g.kvTokens*(g.k+g.v)+softmax+c.Step.KV)
		}
		return
	}
	back := kernelBackward(op, &g, s)
	c.back = back
	c.peak(
		moment{stream + back, min(s.NewGrads, s.w()*g.out*op.Dim), 0},
		// the output's projection, then the queries'
		moment{stream + e*n*g.out, min(s.NewGrads, s.w()*g.out*op.Dim), min(s.NewGrads, s.w()*g.out*op.Dim)},
		moment{2*stream + e*n*(g.q+op.Dim), s.NewGrads, min(s.NewGrads, s.w()*g.q*op.Dim)},
	)
}

// geo is attention's widths and counts.
type geo struct {
	q, k, v, out int64 // widths of q, k, v and the output, all heads
	kvTokens     int64 // tokens that k and v are made of
	// prompt is the tokens in the KV caches after the prompt, cached after the
	// last token. A window's cache is a view of the prompt's whole keys and
	// values until the first new token cuts it down (cache_utils.py,
	// DynamicSlidingWindowLayer.update: torch.cat, then a slice).
	prompt, cached int64
	scores         int64 // elements of the score matrix
	// masked are the elements that a sliding window costs where the sequence
	// fills it: with a mask SDPA is given repeated keys and values, and a
	// bias [batch, length, length], which at::where makes of the boolean mask
	// in each layer (sdpa_attention.py: use_gqa_in_sdpa; attention.cpp:
	// convert_boolean_attn_mask).
	masked int64
	// repeated are the elements that repeated keys and values have more than
	// those of the KV heads (repeat_kv).
	repeated int64
	by       attentionKernel
	flops    float64
	kernel   float64 // of them, the products of queries, keys and values
}

func geometry(op modelgraph.Attention, s *Shape) geo {
	vd := op.ValueDim
	if vd == 0 {
		vd = op.HeadDim
	}
	g := geo{
		q: op.Heads * op.HeadDim, k: op.KVHeads * op.HeadDim, v: op.KVHeads * vd,
		out: op.Heads * vd, kvTokens: s.Tokens,
	}
	length, cached := s.Length, s.Cache
	if windowed(op, s) || op.ImageMask && s.Images && s.Attention != costmodel.FlashAttention {
		g.masked = s.Tokens*(g.q+g.out-g.k-g.v) + s.Tokens*s.Length
	}
	if op.Cross {
		g.kvTokens = s.Encoder
		length = s.Encoder / max(1, s.Batch)
		cached = length
	}
	full := length
	g.repeated = g.kvTokens * (g.q + g.out - g.k - g.v)
	if op.Window > 0 {
		length, cached = min(length, op.Window), min(cached, op.Window)
	}
	g.prompt, g.cached = s.Batch*full, s.Batch*cached
	if s.Cache <= s.Length {
		g.cached = g.prompt
	}
	g.scores = op.Heads * s.Tokens * length
	seen := float64(length)
	if !op.Bidirectional && !op.Cross && op.Window == 0 {
		seen /= 2 // the causal half
	}
	g.kernel = 2 * float64(s.Tokens) * seen * float64(g.q+g.out)
	g.flops = 2*float64(s.Tokens)*float64(op.Dim)*float64(g.q+g.out) +
		2*float64(g.kvTokens)*float64(op.Dim)*float64(g.k+g.v) +
		g.kernel
	if g.by = kernelOf(op, &g, s); g.by == scoresInMemory {
		g.scores = op.Heads * s.Tokens * full // a window masks, it saves nothing
	}
	return g
}
