package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		runs:    true,
		types:   []string{"qwen2"},
		class:   "Qwen2ForCausalLM",
		classes: causalClasses("Qwen2", sequenceClassification, tokenClassification, questionAnswering),
		build: func(modules *builder, cfg *config, class string) {
			qwen2(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
		},
	})
}

// qwen2 reads a Qwen2Config (configuration_qwen2.py): a llama with biases on
// q, k and v (modeling_qwen2.py: Qwen2Attention).
func qwen2(cfg *config) *decoder {
	hidden := cfg.pos(4096, "hidden_size")
	attn := groupedAttention(cfg, hidden, headDefaults{q: 32, kv: 32})
	attn.bias = true
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

// qwenWindows is the attention of Qwen 2 and 3 per layer: from layer
// max_window_layers on it slides, if use_sliding_window says so.
func qwenWindows(cfg *config, attn attention, layers int64) func(int64) part {
	width := qwenWindow(cfg)
	from := cfg.dim(28, "max_window_layers")
	return attn.windows(layerTypes(cfg, layers, func(i int64) bool { return width > 0 && i >= from }), width)
}

// qwenWindow is sliding_window where use_sliding_window is set.
func qwenWindow(cfg *config) int64 {
	if !cfg.flag("use_sliding_window") {
		return 0
	}
	return readWindow(cfg, 4096)
}
