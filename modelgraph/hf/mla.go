package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// latent is multi-head latent attention (modeling_deepseek_v3.py: DeepseekV3Attention). Keys and
// values come from a latent of kvRank, q from a latent of qRank, or directly if qRank is 0. Only a
// part of a head's q and k is rotated.
type latent struct {
	dim, heads, qRank, kvRank, nope, rope, value int64
	bias                                         bool
}

func latentAttention(cfg *config, hidden int64) latent {
	attn := latent{
		dim: hidden, heads: cfg.pos(128, "num_attention_heads"), kvRank: cfg.pos(512, "kv_lora_rank"),
		nope: cfg.dim(128, "qk_nope_head_dim"), rope: cfg.pos(64, "qk_rope_head_dim"), value: cfg.pos(128, "v_head_dim"),
		bias: cfg.bool(false, "attention_bias"),
	}
	if !cfg.null("q_lora_rank") {
		attn.qRank = cfg.pos(1536, "q_lora_rank")
	}
	if kv := cfg.orNull(128, attn.heads, "num_key_value_heads"); cfg.said("num_key_value_heads") && attn.heads%kv != 0 {
		cfg.fail("num_key_value_heads", "%d does not divide num_attention_heads %d", kv, attn.heads)
	}
	cfg.product("qk_nope_head_dim", attn.heads, attn.nope+attn.rope+attn.value)
	return attn
}

func (attn latent) part() part {
	op := modelgraph.Attention{
		Dim: attn.dim, Heads: attn.heads, KVHeads: attn.heads, HeadDim: attn.nope + attn.rope, ValueDim: attn.value,
		QRank: attn.qRank, KVRank: attn.kvRank, RopeDim: attn.rope, Rope: true,
	}
	biased := []string{"q_a_proj", "kv_a_proj_with_mqa", "o_proj"}
	return part{op: op, params: modelgraph.Params(op, func(linear string) bool { return attn.bias && slices.Contains(biased, linear) })}
}
