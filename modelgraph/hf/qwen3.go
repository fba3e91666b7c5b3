package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		runs:    true,
		types:   []string{"qwen3"},
		class:   "Qwen3ForCausalLM",
		classes: causalClasses("Qwen3", sequenceClassification, tokenClassification, questionAnswering),
		build: func(modules *builder, cfg *config, class string) {
			qwen3(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
		},
	})
}

// qwen3 reads a Qwen3Config (configuration_qwen3.py): norms on q and k, a
// head width of its own, biases on request.
func qwen3(cfg *config) *decoder {
	hidden := cfg.pos(4096, "hidden_size")
	attn := qwen3Attention(cfg, hidden, headDefaults{q: 32, kv: 32, dim: 128})
	attn.rotation = cfg.rotation(attn.headDim, 32768)
	mlp := gatedMLP(cfg, hidden, 22016, "silu")
	layers := cfg.count(32, "num_hidden_layers")
	vocab := cfg.pos(151936, "vocab_size")
	return &decoder{
		hidden: hidden, vocab: vocab, layers: layers,
		norm: modelgraph.RMSNorm, epsilon: cfg.number(1e-6, "rms_norm_eps"), padding: cfg.padding(0, vocab),
		attention: qwenWindows(cfg, attn, layers),
		ffn:       func(int64) part { return mlp.part() },
		rotary:    rotary(attn.headDim),
	}
}

// qwen3Attention is modeling_qwen3.py: Qwen3Attention.
func qwen3Attention(cfg *config, hidden int64, def headDefaults) attention {
	attn := groupedAttention(cfg, hidden, def)
	attn.bias = cfg.bool(false, "attention_bias")
	attn.outBias = attn.bias
	attn.qkNorm, attn.qkEpsilon = modelgraph.RMSNorm, cfg.number(1e-6, "rms_norm_eps")
	return attn
}
