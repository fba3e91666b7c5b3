package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// attention is grouped-query attention with separate projections q_proj, k_proj, v_proj, o_proj;
// fused, o_proj and one qkv_proj.
type attention struct {
	dim, heads, kvHeads, headDim, window int64
	bias, outBias, fused                 bool
	packed                               bool                 // q, k and v are W_pack (Baichuan)
	sinks                                bool                 // a learned logit per head (gpt-oss)
	qkNorm                               modelgraph.NormStyle // q_norm, k_norm over headDim
	bidirectional, eager, softCap        bool
	ropeRows                             bool // positions in three dimensions (Qwen2.5-VL)
	scoreBias                            string
	rotation                             modelgraph.Rotation
	scale, scoreCap, qkEpsilon           float64
	names                                attentionNames // zero: a llama's
	qkNormWhole                          bool           // the norms go over all heads at once
	unfused, fp32Scores, fp32Rotation    bool           // as in [modelgraph.Attention]
	dropout, innerDropout                bool
	castRotation, qkNormFP32, ownScores  bool
	turning, extraScores                 int64
	gated                                bool                // q_proj makes a gate next to q
	unturned                             bool                // positions do not enter
	extra                                []modelgraph.Tensor // after the projections, in place of q_norm and k_norm
}

// attentionNames are projections unlike a llama's: q, k, v and out, or one for all three.
type attentionNames struct {
	q, k, v, fused, out string
	keysFirst           bool // k and v precede q
}

// headDefaults are a family's defaults for head counts and width. kv 0 means q, dim 0 hidden / q.
type headDefaults struct{ q, kv, dim int64 }

// groupedAttention reads heads, KV heads and head width. It computes a null count or width; the
// family's default does not apply.
func groupedAttention(cfg *config, hidden int64, def headDefaults) attention {
	attn := attention{dim: hidden, heads: cfg.pos(def.q, "num_attention_heads")}
	attn.kvHeads = cfg.orNull(def.kv, attn.heads, "num_key_value_heads")
	attn.headDim = cfg.orNull(def.dim, max(1, hidden/attn.heads), "head_dim")
	if cfg.said("num_key_value_heads") && attn.heads%attn.kvHeads != 0 {
		cfg.fail("num_key_value_heads", "%d does not divide num_attention_heads %d", attn.kvHeads, attn.heads)
	}
	cfg.product("head_dim", max(attn.heads, attn.kvHeads), attn.headDim)
	return attn
}

func (attn attention) at(window int64) part {
	attn.window = window
	return attn.part()
}

func (attn attention) part() part {
	p := part{op: attn.op()}
	if attn.packed {
		q, kv := attn.heads*attn.headDim, attn.kvHeads*attn.headDim
		p.params = join(linearParams("W_pack", attn.dim, q+2*kv, attn.bias), linearParams("o_proj", q, attn.dim, attn.outBias))
		return p
	}
	if attn.names != (attentionNames{}) {
		p.params = append(attn.spelled(), attn.extra...)
		return p
	}
	bare := attn.op()
	if attn.extra != nil {
		bare.QKNorm, bare.QKNormWhole = "", false
	}
	p.params = modelgraph.Params(bare, func(linear string) bool { return linear == "o_proj" && attn.outBias || linear != "o_proj" && attn.bias })
	if attn.sinks {
		p.params = slices.Insert(p.params, 0, tensor("sinks", attn.heads))
	}
	p.params = append(p.params, attn.extra...)
	return p
}

// spelled are the projections under the family's names.
func (attn attention) spelled() []modelgraph.Tensor {
	q, kv, names := attn.heads*attn.headDim, attn.kvHeads*attn.headDim, attn.names
	out := linearParams(names.out, q, attn.dim, attn.outBias)
	if names.fused != "" {
		return join(linearParams(names.fused, attn.dim, q+2*kv, attn.bias), out)
	}
	queries := linearParams(names.q, attn.dim, q, attn.bias)
	keys := join(linearParams(names.k, attn.dim, kv, attn.bias), linearParams(names.v, attn.dim, kv, attn.bias))
	if names.keysFirst {
		return join(keys, queries, out)
	}
	return join(queries, keys, out)
}

// normed adds norms of q and k, each over one head, that are not q_norm and k_norm, or have a bias.
func (attn *attention) normed(q, k string, style modelgraph.NormStyle, bias bool) {
	attn.qkNorm = style
	attn.extra = join(attn.extra, normParams(q, attn.headDim, bias), normParams(k, attn.headDim, bias))
}

func (attn attention) op() modelgraph.Attention {
	return modelgraph.Attention{
		Dim: attn.dim, Heads: attn.heads, KVHeads: attn.kvHeads, HeadDim: attn.headDim,
		Window: attn.window, Scale: attn.scale, Rope: !attn.unturned, Rotation: attn.rotation, RopeRows: attn.ropeRows,
		QKNorm: attn.qkNorm, QKNormWhole: attn.qkNormWhole, Gated: attn.gated, QKEpsilon: attn.qkEpsilon, Fused: attn.fused || attn.packed || attn.names.fused != "",
		Bidirectional: attn.bidirectional, Eager: attn.eager, ScoreBias: attn.scoreBias, SoftCap: attn.softCap, ScoreCap: attn.scoreCap,
		Turning: attn.turning, Unfused: attn.unfused, FP32Scores: attn.fp32Scores,
		FP32Rotation: attn.fp32Rotation, CastRotation: attn.castRotation, QKNormFP32: attn.qkNormFP32, OwnScores: attn.ownScores, ExtraScores: attn.extraScores, Dropout: attn.dropout, InnerDropout: attn.innerDropout,
	}
}

// dividesHidden faults heads that do not divide the hidden size.
func (cfg *fieldSet) dividesHidden(hidden, heads int64) {
	if hidden%heads != 0 {
		cfg.fail("num_attention_heads", "%d does not divide hidden_size %d", heads, hidden)
	}
}

// product is the size x × y; y comes from the named field.
func (cfg *fieldSet) product(name string, x, y int64) int64 {
	if y > 0 && x > maxDim/y {
		cfg.fail(name, "%d × %d is more than 2^40", x, y)
		return 1
	}
	return x * y
}
