package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// attention is grouped-query attention with separate projections q_proj,
// k_proj, v_proj, o_proj; fused, o_proj and one qkv_proj.
type attention struct {
	dim, heads, kvHeads, headDim, window int64
	bias, outBias, fused                 bool
	packed                               bool                 // q, k and v are W_pack (Baichuan)
	sinks                                bool                 // a learned logit per head (gpt-oss)
	qkNorm                               modelgraph.NormStyle // q_norm, k_norm over headDim
	bidirectional, eager, softCap        bool
	ropeRows                             bool // positions in three dimensions (Qwen2.5-VL)
}

// headDefaults are a family's defaults for head counts and width; kv 0: as
// many as q, dim 0: hidden / q.
type headDefaults struct{ q, kv, dim int64 }

// selfAttention reads heads, KV heads and head width where heads must divide
// the hidden size (validate_architecture of Llama, Gemma 2 and 3). heads is
// the family's default; KV heads default to heads, the head width to
// hidden / heads.
func selfAttention(c *config, hidden, heads int64) attention {
	a := groupedAttention(c, hidden, headDefaults{q: heads})
	c.dividesHidden(hidden, a.heads)
	return a
}

// groupedAttention reads heads, KV heads and head width. A null count or
// width is worked out, whatever the family's default.
func groupedAttention(c *config, hidden int64, def headDefaults) attention {
	a := attention{dim: hidden, heads: c.pos(def.q, "num_attention_heads")}
	a.kvHeads = c.orNull(def.kv, a.heads, "num_key_value_heads")
	a.headDim = c.orNull(def.dim, max(1, hidden/a.heads), "head_dim")
	if c.has("num_key_value_heads") && a.heads%a.kvHeads != 0 {
		c.fail("num_key_value_heads", "%d does not divide num_attention_heads %d", a.kvHeads, a.heads)
	}
	c.product("head_dim", max(a.heads, a.kvHeads), a.headDim)
	return a
}

// at is the attention with the given window.
func (a attention) at(window int64) part {
	a.window = window
	return a.part()
}

func (a attention) part() part {
	p := part{op: a.op()}
	if a.packed {
		q, kv := a.heads*a.headDim, a.kvHeads*a.headDim
		p.params = join(linear("W_pack", a.dim, q+2*kv, a.bias), linear("o_proj", q, a.dim, a.outBias))
		return p
	}
	p.params = modelgraph.Params(p.op, func(linear string) bool { return linear == "o_proj" && a.outBias || linear != "o_proj" && a.bias })
	if a.sinks {
		p.params = slices.Insert(p.params, 0, tensor("sinks", a.heads))
	}
	return p
}

func (a attention) op() modelgraph.Attention {
	return modelgraph.Attention{
		Dim: a.dim, Heads: a.heads, KVHeads: a.kvHeads, HeadDim: a.headDim,
		Window: a.window, Rope: true, RopeRows: a.ropeRows, QKNorm: a.qkNorm, Fused: a.fused || a.packed,
		Bidirectional: a.bidirectional, Eager: a.eager, SoftCap: a.softCap,
	}
}

// dividesHidden faults heads that do not divide the hidden size.
func (c *config) dividesHidden(hidden, heads int64) {
	if hidden%heads != 0 {
		c.fail("num_attention_heads", "%d does not divide hidden_size %d", heads, hidden)
	}
}

// product is x × y, a size of its own; y comes from the named field.
func (c *config) product(name string, x, y int64) int64 {
	if y > 0 && x > maxDim/y {
		c.fail(name, "%d × %d is more than 2^40", x, y)
		return 1
	}
	return x * y
}
