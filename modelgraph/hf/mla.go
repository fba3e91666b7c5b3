package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// latent is multi-head latent attention (modeling_deepseek_v3.py:
// DeepseekV3Attention): keys and values come out of a latent of kvRank, q out
// of one of qRank, or directly where qRank is 0. A head's q and k have a part
// that turns and one that does not.
type latent struct {
	dim, heads, qRank, kvRank, nope, rope, value int64
	bias                                         bool
}

func latentAttention(c *config, hidden int64) latent {
	a := latent{
		dim: hidden, heads: c.pos(128, "num_attention_heads"), kvRank: c.pos(512, "kv_lora_rank"),
		nope: c.dim(128, "qk_nope_head_dim"), rope: c.pos(64, "qk_rope_head_dim"), value: c.pos(128, "v_head_dim"),
		bias: c.bool(false, "attention_bias"),
	}
	if !c.null("q_lora_rank") {
		a.qRank = c.pos(1536, "q_lora_rank")
	}
	if kv := c.orNull(128, a.heads, "num_key_value_heads"); c.has("num_key_value_heads") && a.heads%kv != 0 {
		c.fail("num_key_value_heads", "%d does not divide num_attention_heads %d", kv, a.heads)
	}
	c.product("qk_nope_head_dim", a.heads, a.nope+a.rope+a.value)
	return a
}

func (a latent) part() part {
	op := modelgraph.Attention{
		Dim: a.dim, Heads: a.heads, KVHeads: a.heads, HeadDim: a.nope + a.rope, ValueDim: a.value,
		QRank: a.qRank, KVRank: a.kvRank, RopeDim: a.rope, Rope: true,
	}
	biased := []string{"q_a_proj", "kv_a_proj_with_mqa", "o_proj"}
	return part{op: op, params: modelgraph.Params(op, func(linear string) bool { return a.bias && slices.Contains(biased, linear) })}
}
