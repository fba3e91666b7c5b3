package hf

import "github.com/devmap-dev/devmap/modelgraph"

// lightning is MiniMax's linear attention (modeling_minimax.py: MiniMaxLightningAttention), as wide
// as the attention of its other layers, with decays of a chunk in buffers.
func lightning(cfg *config, attn attention) part {
	inner := cfg.product("head_dim", attn.heads, attn.headDim)
	chunk := cfg.pos(0, "block_size")
	return part{
		op: modelgraph.StateSpace{Dim: attn.dim, Inner: inner, State: attn.headDim, Heads: attn.heads, Groups: attn.heads, Chunk: chunk},
		params: join(normParams("norm", inner, false), linearParams("qkv_proj", attn.dim, 3*inner, false),
			linearParams("out_proj", inner, attn.dim, false), linearParams("output_gate", attn.dim, inner, false)),
		buffers: []modelgraph.Tensor{
			tensor("slope_rate", attn.heads, 1, 1), tensor("query_decay", attn.heads, chunk, 1), tensor("key_decay", attn.heads, chunk, 1),
			tensor("diagonal_decay", 1, attn.heads, chunk, chunk),
		},
	}
}

// deltaNet is the gated delta rule of Qwen3-Next and Qwen 3.5 (modeling_qwen3_next.py:
// Qwen3NextGatedDeltaNet, whose torch path takes chunks of 64 tokens). With apart, the projections
// of q, k and v, of the gate, and of both numbers a head are separate matrices.
func deltaNet(cfg *config, hidden int64, apart bool) part {
	heads, groups := cfg.pos(0, "linear_num_value_heads"), cfg.pos(0, "linear_num_key_heads")
	value := cfg.product("linear_value_head_dim", heads, cfg.pos(0, "linear_value_head_dim"))
	state, kernel := cfg.pos(0, "linear_key_head_dim"), cfg.pos(0, "linear_conv_kernel_dim")
	key := cfg.product("linear_key_head_dim", groups, state)
	p := part{op: modelgraph.StateSpace{Dim: hidden, Inner: value, State: state, Kernel: kernel, Heads: heads, Groups: groups, Chunk: 64, Delta: true}}
	p.params = []modelgraph.Tensor{tensor("dt_bias", heads), tensor("A_log", heads), tensor("conv1d.weight", 2*key+value, 1, kernel)}
	norm, out := normParams("norm", value/heads, false), linearParams("out_proj", value, hidden, false)
	if apart {
		p.params = join(p.params, norm, out, linearParams("in_proj_qkv", hidden, 2*key+value, false), linearParams("in_proj_z", hidden, value, false),
			linearParams("in_proj_b", hidden, heads, false), linearParams("in_proj_a", hidden, heads, false))
	} else {
		p.params = join(p.params, linearParams("in_proj_qkvz", hidden, 2*key+2*value, false), linearParams("in_proj_ba", hidden, 2*heads, false), norm, out)
	}
	return p
}

// deltaBlocks gives a decoder the gated delta rule, but every fourth layer
// (full_attention_interval) gated attention that rotates a quarter of a head.
func (model *parts) deltaBlocks(apart bool) {
	cfg := model.cfg
	model.norm = modelgraph.GemmaRMSNorm
	model.attn.qkNorm, model.attn.gated = modelgraph.GemmaRMSNorm, true
	model.partial(0.25)
	interval := cfg.pos(4, "full_attention_interval")
	types := kindsOf(cfg, model.layers, []string{fullAttention, linearAttention}, func(i int64) string {
		if (i+1)%interval != 0 {
			return linearAttention
		}
		return fullAttention
	})
	delta := deltaNet(cfg, model.hidden, apart)
	model.attention = func(i int64) part {
		if types[i] == linearAttention {
			return delta
		}
		return model.attn.part()
	}
	model.formAt = func(i int64) blockForm {
		form := llamaBlock
		if types[i] == linearAttention {
			form.attn = "linear_attn"
		}
		return form
	}
}

// qwen3Next: the gated delta rule, experts next to a gated feed-forward that all tokens pass.
func qwen3Next(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.deltaBlocks(false)
	model.qwenExperts()
	return model.done()
}

// qwen35 is the text model of Qwen 3.5.
func qwen35(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.deltaBlocks(true)
	return model.done()
}

// qwen35MoE is that with experts in every layer.
func qwen35MoE(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.deltaBlocks(true)
	model.qwenExperts()
	return model.done()
}
