package hf

import "github.com/devmap-dev/devmap/modelgraph"

// This file has decoders that may run attention and feed-forward in parallel.

// cohere2: windows and rotation in all but every fourth layer (Cohere2Attention.forward:
// sliding_window). No config gives a head's width.
func cohere2(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.norm, model.form = modelgraph.LayerNorm, parallelBlock
	model.normEager, model.scaled, model.attn.castRotation = true, true, true
	model.attn.headDim = max(1, model.hidden/model.attn.heads)
	cfg.computes("head_dim", model.attn.headDim)
	model.rotaryDim = model.attn.headDim
	pattern := cfg.pos(4, "sliding_window_pattern")
	width := readWindow(cfg, 0)
	types := layerTypes(cfg, model.layers, func(i int64) bool { return (i+1)%pattern != 0 })
	model.attention = func(i int64) part {
		at := model.attn
		at.unturned = types[i] != slidingAttention || cfg.null("sliding_window")
		return at.windows(types, width)(i)
	}
	return model.done()
}

// falcon: one matrix for q, k and v, parallel parts after one norm or two, optional ALiBi for RoPE.
func falcon(cfg *config) *decoder {
	cfg.harmlessAs("ff_factor", "4") // ffn_hidden_size if it is absent
	model := llamaParts(cfg)
	model.layerNorms()
	model.hidden = cfg.pos(0, "n_embed", "hidden_size")
	bias, wide := cfg.on("bias"), cfg.on("new_decoder_architecture")
	heads := cfg.pos(0, "num_attention_heads")
	cfg.dividesHidden(model.hidden, heads)
	model.attn = attention{
		dim: model.hidden, heads: heads, kvHeads: 1, headDim: max(1, model.hidden/heads), bias: bias, outBias: bias,
		names: attentionNames{fused: "query_key_value", out: "dense"},
	}
	model.attn.unfused, model.attn.ownScores = !wide, true
	switch {
	case wide:
		model.attn.kvHeads = cfg.optional(heads, "num_kv_heads")
	case !cfg.on("multi_query"):
		model.attn.kvHeads = heads
	}
	model.mlp = feedForward{
		dim: model.hidden, hidden: cfg.optional(4*model.hidden, "ffn_hidden_size"), activation: cfg.name("activation"), bias: bias,
		up: "dense_h_to_4h", down: "dense_4h_to_h",
	}
	model.classifier = true
	model.names = decoderNames{base: "transformer", embed: "word_embeddings", layers: "h", norm: "ln_f"}
	model.form = blockForm{attnNorm: "input_layernorm", attn: "self_attention", ffn: "mlp", parallel: true, order: []string{"self_attention", "mlp", "input_layernorm"}}
	norms := cfg.orZero("num_ln_in_parallel_attn")
	switch {
	case !cfg.on("parallel_attn"):
		model.form = blockForm{
			attnNorm: "input_layernorm", attn: "self_attention", ffnNorm: "post_attention_layernorm", ffn: "mlp",
			order: []string{"self_attention", "mlp", "post_attention_layernorm", "input_layernorm"},
		}
	case norms == 2 || cfg.null("num_ln_in_parallel_attn") && wide:
		model.form = blockForm{attnNorm: "ln_attn", attn: "self_attention", ffnNorm: "ln_mlp", ffn: "mlp", parallel: true}
	}
	model.rotaryDim = model.attn.headDim
	if cfg.on("alibi") {
		model.attn.eager, model.attn.scoreBias = true, "alibi"
	}
	return model.done()
}

// phi: parallel parts after one LayerNorm, biases everywhere, half of a head turns.
func phi(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.layerNorms()
	model.form, model.headBias = parallelBlock, true
	model.names = decoderNames{base: "model", embed: "embed_tokens", layers: "layers", norm: "final_layernorm"}
	model.attn.names = attentionNames{q: "q_proj", k: "k_proj", v: "v_proj", out: "dense"}
	model.attn.bias, model.attn.outBias = true, true
	if cfg.on("qk_layernorm") {
		model.attn.normed("q_layernorm", "k_layernorm", modelgraph.LayerNorm, true)
	}
	model.mlp.up, model.mlp.down, model.mlp.bias = "fc1", "fc2", true
	model.dropped(0, "resid_pdrop")
	model.partial(0.5)
	return model.done()
}
