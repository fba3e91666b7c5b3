package hf

import (
	"fmt"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		types: []string{"minimax_text_01"}, class: "MiniMaxText01ForCausalLM", classes: causalClasses("MiniMaxText01"),
		unread: []string{
			"layernorm_full_attention_alpha", "layernorm_full_attention_beta", "layernorm_linear_attention_alpha", "layernorm_linear_attention_beta",
			"layernorm_mlp_alpha", "layernorm_mlp_beta", "postnorm", "router_jitter_noise", "shared_moe_mode",
		},
		build: func(modules *builder, cfg *config, class string) {
			miniMaxText01(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
		},
	})
}

// miniMaxText01 is modeling_minimax_text_01.py: lightning attention in layers with 0 in
// attn_type_list, separate experts, and in every attention layer fp32 rows of all positions.
func miniMaxText01(cfg *config) *decoder {
	hidden, layers := cfg.pos(0, "hidden_size"), cfg.count(0, "num_hidden_layers")
	attn := groupedAttention(cfg, hidden, headDefaults{})
	kinds := cfg.dims("attn_type_list")
	if int64(len(kinds)) < layers {
		cfg.uneven("attn_type_list", len(kinds), layers)
		kinds = make([]int64, layers)
	}
	turned, positions := cfg.orNull(0, attn.headDim, "rotary_dim"), cfg.pos(0, "max_position_embeddings")
	attend := attn.part()
	attend.buffers = []modelgraph.Tensor{
		buffer("rotary_emb.inv_freq", modelgraph.F32, (turned+1)/2),
		buffer("rotary_emb.cos_cached", modelgraph.F32, positions, (turned+1)/2*2), buffer("rotary_emb.sin_cached", modelgraph.F32, positions, (turned+1)/2*2),
	}
	inner := cfg.product("head_dim", attn.heads, attn.headDim)
	const chunk = 256 // BLOCK there
	linear := part{
		op: modelgraph.StateSpace{Dim: hidden, Inner: inner, State: attn.headDim, Heads: attn.heads, Groups: attn.heads, Chunk: chunk},
		params: join(linearParams("out_proj", inner, hidden, false), normParams("norm", inner, false),
			linearParams("qkv_proj", hidden, 3*inner, false), linearParams("output_gate", hidden, inner, false)),
	}
	experts := routed(cfg, moe{dim: hidden, hidden: cfg.pos(0, "intermediate_size"), experts: cfg.pos(0, "num_local_experts"), activation: cfg.str("silu", "hidden_act")}, 0)
	mixture := experts.mixtralOneByOne(cfg)
	form := llamaBlock
	form.ffn, form.order = "block_sparse_moe", []string{"self_attn", "block_sparse_moe", "input_layernorm", "post_attention_layernorm"}
	d := &decoder{
		hidden: hidden, vocab: cfg.pos(0, "vocab_size"), layers: layers, norm: modelgraph.RMSNorm, form: form,
		attention: func(i int64) part {
			if kinds[i] == 0 {
				return linear
			}
			return attend
		},
		ffn: func(int64) part { return mixture },
	}
	if wide := cfg.orZero("shared_intermediate_size"); wide > 0 {
		cfg.fail("shared_intermediate_size", "%d: a shared feed-forward layer next to the experts is not supported", wide)
	}
	return d
}

// mixtralOneByOne are experts under Mixtral's first names, after the router.
func (experts moe) mixtralOneByOne(cfg *config) part {
	const most = 4096
	if experts.experts > most {
		cfg.fail("num_local_experts", "%d experts are more than %d", experts.experts, most)
		return part{op: experts.op()}
	}
	params := linearParams("gate", experts.dim, experts.experts, false)
	for i := range experts.experts {
		at := fmt.Sprintf("experts.%d.w", i)
		params = join(params, linearParams(at+"1", experts.dim, experts.hidden, false), linearParams(at+"2", experts.hidden, experts.dim, false),
			linearParams(at+"3", experts.dim, experts.hidden, false))
	}
	return part{op: experts.op(), params: params}
}
