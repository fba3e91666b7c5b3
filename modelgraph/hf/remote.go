package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// This file has decoders without code in Transformers, by their repositories' code: DeepSeek-MoE,
// InternLM, MiMo, and EXAONE before its fourth.

func init() {
	register(family{
		types: []string{"exaone"}, class: "ExaoneForCausalLM", classes: causalClasses("Exaone"),
		unread: []string{"embed_dropout"},
		build: func(modules *builder, cfg *config, class string) {
			exaone(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
		},
	})
}

// cachedRows are the buffers of each attention's rotary embedding, with the rows of all positions.
func cachedRows(cfg *config, attn *attention, cos, sin string) []modelgraph.Tensor {
	rows := cfg.pos(2048, "max_position_embeddings")
	return []modelgraph.Tensor{
		buffer("rotary_emb.inv_freq", modelgraph.F32, (attn.headDim+1)/2),
		tensor(dot("rotary_emb", cos), rows, (attn.headDim+1)/2*2), tensor(dot("rotary_emb", sin), rows, (attn.headDim+1)/2*2),
	}
}

// cached gives every layer's attention such buffers, in place of the model's.
func (d *decoder) cached(cfg *config, attn *attention, cos, sin string) {
	rows, attend := cachedRows(cfg, attn, cos, sin), d.attention
	d.rotary = modelgraph.Layer{}
	d.attention = func(i int64) part {
		p := attend(i)
		p.buffers = slices.Clone(rows)
		return p
	}
}

// deepseekMoE is modeling_deepseek.py of DeepSeek-MoE: a llama's attention, and separate experts in
// every moe_layer_freq-th layer from first_k_dense_replace on, with shared ones for all tokens.
func deepseekMoE(cfg *config, d *decoder, attn *attention, ffn *feedForward) {
	cfg.dividesHidden(attn.dim, attn.heads)
	d.cached(cfg, attn, "cos_cached", "sin_cached")
	if !cfg.has("n_routed_experts") {
		return
	}
	experts := routed(cfg, moe{
		dim: attn.dim, hidden: cfg.pos(1407, "moe_intermediate_size"), experts: cfg.pos(0, "n_routed_experts"), activation: ffn.activation,
	}, 0)
	if cfg.has("n_shared_experts") {
		experts.shared = cfg.product("n_shared_experts", experts.hidden, cfg.pos(0, "n_shared_experts"))
	}
	const most = 4096 // names of three tensors each, in every layer
	if experts.experts > most {
		cfg.fail("n_routed_experts", "%d experts are more than %d", experts.experts, most)
		return
	}
	first, every := cfg.dim(0, "first_k_dense_replace"), cfg.pos(1, "moe_layer_freq")
	mixture := experts.oneByOne("gate_proj", "up_proj", "down_proj")
	d.ffn = func(i int64) part {
		if i < first || i%every != 0 {
			return ffn.part()
		}
		return mixture
	}
}

// oneByOne are experts with separate matrices, the router, and the shared expert.
func (experts moe) oneByOne(gate, up, down string) part {
	var params []modelgraph.Tensor
	for i := range experts.experts {
		at := indexed("experts", i)
		params = join(params, linearParams(dot(at, gate), experts.dim, experts.hidden, false), linearParams(dot(at, up), experts.dim, experts.hidden, false),
			linearParams(dot(at, down), experts.hidden, experts.dim, false))
	}
	params = append(params, tensor("gate.weight", experts.experts, experts.dim))
	if experts.shared > 0 {
		params = join(params, feedForward{dim: experts.dim, hidden: experts.shared}.under("shared_experts"))
	}
	return part{op: experts.op(), params: params}
}

// internLM is modeling_internlm.py of the first InternLM: as many KV heads as heads, a bias in all
// matrices of attention or in none.
func internLM(cfg *config, d *decoder, attn *attention, ffn *feedForward) {
	cfg.dividesHidden(attn.dim, attn.heads)
	if attn.kvHeads != attn.heads {
		cfg.fail("num_key_value_heads", "%d for num_attention_heads %d: an internlm has as many", attn.kvHeads, attn.heads)
	}
	attn.bias = cfg.bool(true, "bias")
	attn.outBias = attn.bias
	d.cached(cfg, attn, "cos_cached", "sin_cached")
	p := ffn.part()
	p.params = join(linearParams("gate_proj", ffn.dim, ffn.hidden, false), linearParams("down_proj", ffn.hidden, ffn.dim, false), linearParams("up_proj", ffn.dim, ffn.hidden, false))
	d.ffn = func(int64) part { return p }
}

// miMo is modeling_mimo.py: a Qwen 2 with layers that predict tokens further ahead, which its
// forward does not run.
func miMo(cfg *config, d *decoder, attn *attention, ffn *feedForward) {
	attn.bias, attn.outBias = true, false
	if width := qwenWindow(cfg); width > 0 {
		cfg.fail("use_sliding_window", "windows of a mimo are not known here")
	}
	count, hidden := cfg.count(0, "num_nextn_predict_layers"), attn.dim
	d.ahead = func(modules *builder, path string) {
		for i := range count {
			at := dot(path, indexed("mtp_layers", i))
			owned := func(name string, params ...modelgraph.Tensor) {
				modules.add(dot(at, name), modelgraph.Parameter{}, nil, params...)
			}
			for _, norm := range []string{"input_layernorm", "post_attention_layernorm", "token_layernorm", "hidden_layernorm"} {
				owned(norm, tensor("weight", hidden))
			}
			owned("input_proj", linearParams("", 2*hidden, hidden, false)...)
			owned("final_layernorm", tensor("weight", hidden))
			q, kv := attn.heads*attn.headDim, attn.kvHeads*attn.headDim
			owned("self_attn.q_proj", linearParams("", hidden, q, true)...)
			owned("self_attn.k_proj", linearParams("", hidden, kv, true)...)
			owned("self_attn.v_proj", linearParams("", hidden, kv, true)...)
			owned("self_attn.o_proj", linearParams("", q, hidden, false)...)
			owned("mlp.gate_proj", linearParams("", hidden, ffn.hidden, false)...)
			owned("mlp.up_proj", linearParams("", hidden, ffn.hidden, false)...)
			owned("mlp.down_proj", linearParams("", ffn.hidden, hidden, false)...)
		}
	}
}

// exaone is modeling_exaone.py of EXAONE 3 and 3.5: a llama under GPT-Neo's names.
func exaone(cfg *config) *decoder {
	hidden := cfg.pos(0, "hidden_size")
	attn := groupedAttention(cfg, hidden, headDefaults{})
	attn.names = attentionNames{q: "q_proj", k: "k_proj", v: "v_proj", out: "out_proj"}
	ffn := feedForward{dim: hidden, hidden: cfg.pos(0, "intermediate_size"), activation: cfg.str("silu", "activation_function")}
	mlp := ffn.part()
	mlp.params = join(linearParams("c_fc_0", hidden, ffn.hidden, false), linearParams("c_fc_1", hidden, ffn.hidden, false), linearParams("c_proj", ffn.hidden, hidden, false))
	form := gptBlock
	form.attn, form.order = "attn.attention", []string{"ln_1", "attn.attention", "ln_2", "mlp"}
	return &decoder{
		hidden: hidden, vocab: cfg.pos(0, "vocab_size"), layers: cfg.count(0, "num_layers", "num_hidden_layers"), norm: modelgraph.RMSNorm, form: form,
		names:     decoderNames{base: "transformer", embed: "wte", layers: "h", norm: "ln_f", rotary: "rotary"},
		attention: func(int64) part { return attn.part() }, ffn: func(int64) part { return mlp }, rotary: rotary(attn.headDim),
		behind: func(modules *builder, path string) { modules.empty(dot(path, "drop")) },
	}
}
