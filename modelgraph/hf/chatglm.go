package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	classes := []string{"ChatGLMForConditionalGeneration", "ChatGLMModel"}
	register(family{
		types: []string{"chatglm"}, class: classes[0], classes: classes,
		unread: []string{
			"apply_query_key_layer_scaling", "apply_residual_connection_post_layernorm", "attention_softmax_in_fp32", "bias_dropout_fusion",
			"fp32_residual_connection", "layernorm_epsilon", "original_rope", "rope_ratio", "prefix_projection", "interleaved_qkv", "vocab_size",
		},
		build:  chatGLM,
		maxSeq: func(cfg *config) int64 { return cfg.dim(0, "seq_length") },
	})
}

// chatGLM is modeling_chatglm.py of ChatGLM 2 and 3 and the first GLM-4, whose head is the base
// model's. If architectures names the base class, but auto_map has the other class for AutoModel,
// the other is built.
func chatGLM(modules *builder, cfg *config, class string) {
	for _, name := range []string{"padded_vocab_size", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_layers"} {
		if _, there := cfg.members[name]; !there {
			cfg.fail(name, "it is absent: only ChatGLM 2 and 3 and the first GLM-4 are known here, and they have it")
		}
	}
	chatGLMOnly(cfg)
	path := "transformer"
	if auto := cfg.sub("auto_map"); baseClass(class) && !auto.has("AutoModel") {
		path = ""
	}
	hidden, heads := cfg.pos(1, "hidden_size"), cfg.pos(1, "num_attention_heads")
	bias := cfg.flag("add_bias_linear")
	attn := attention{
		dim: hidden, heads: heads, kvHeads: heads, headDim: cfg.orNull(0, max(1, hidden/heads), "kv_channels"),
		bias: bias || cfg.flag("add_qkv_bias"), outBias: bias, names: attentionNames{fused: "query_key_value", out: "dense"},
	}
	cfg.product("kv_channels", heads, attn.headDim)
	if cfg.flag("multi_query_attention") {
		attn.kvHeads = cfg.pos(1, "multi_query_group_num")
		if heads%attn.kvHeads != 0 {
			cfg.fail("multi_query_group_num", "%d does not divide num_attention_heads %d", attn.kvHeads, heads)
		}
	}
	inner := cfg.pos(1, "ffn_hidden_size")
	mlp := part{
		op:     modelgraph.MLP{Dim: hidden, Hidden: inner, Gated: true, Fused: true, Activation: "silu"},
		params: join(linearParams("dense_h_to_4h", hidden, 2*inner, bias), linearParams("dense_4h_to_h", inner, hidden, bias)),
	}
	d := &decoder{
		hidden: hidden, vocab: cfg.pos(1, "padded_vocab_size"), layers: cfg.count(1, "num_layers"), norm: modelgraph.RMSNorm,
		form: blockForm{
			attnNorm: "input_layernorm", attn: "self_attention", ffnNorm: "post_attention_layernorm", ffn: "mlp",
			order: []string{"input_layernorm", "self_attention", "post_attention_layernorm", "mlp"},
		},
		attention: func(int64) part { return attn.part() }, ffn: func(int64) part { return mlp },
		names: decoderNames{embed: "embedding.word_embeddings", layers: "encoder.layers", norm: "encoder.final_layernorm"},
		behind: func(modules *builder, path string) { // half of a head turns
			rows := modules.add(dot(path, "rotary_pos_emb"), modelgraph.Rotary{HeadDim: max(1, attn.headDim/2)}, nil)
			turned := tensor("inv_freq", (attn.headDim/2+1)/2)
			turned.Persistent = true
			rows.Buffers = []modelgraph.Tensor{turned}
		},
	}
	d.build(modules, path)
	addVocabHead(modules, dot(path, "output_layer"), hidden, d.vocab, "")
}

// chatGLMOnly refuses fields that make other modules.
func chatGLMOnly(cfg *config) {
	for name, want := range map[string]bool{"rmsnorm": true, "post_layer_norm": true, "tie_word_embeddings": false} {
		if got := cfg.bool(want, name); got != want {
			cfg.fail(name, "%v: modules of such a chatglm are not known here", got)
		}
	}
	for _, name := range []string{"pre_seq_len", "quantization_bit", "vision_config"} {
		if v := cfg.members[name]; cfg.has(name) && !empty(v) {
			cfg.fail(name, "%s: modules of such a chatglm are not known here", short(v))
		}
	}
}
