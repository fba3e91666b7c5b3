package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"qwen2"},
		class:   "Qwen2ForCausalLM",
		classes: causalClasses("Qwen2", sequenceClassification, tokenClassification, questionAnswering),
		build: func(b *builder, c *config, class string) {
			qwen2(c).causal(b, c, class, c.bool(false, "tie_word_embeddings"))
		},
	})
}

// qwen2 reads a Qwen2Config (configuration_qwen2.py): a llama with biases on
// q, k and v (modeling_qwen2.py: Qwen2Attention).
func qwen2(c *config) *decoder {
	h := c.pos(4096, "hidden_size")
	a := groupedAttention(c, h, headDefaults{q: 32, kv: 32})
	a.bias = true
	mlp := gatedMLP(c, h, 22016, "silu")
	layers := c.count(32, "num_hidden_layers")
	return &decoder{
		hidden: h, vocab: c.pos(151936, "vocab_size"), layers: layers,
		norm:      modelgraph.RMSNorm,
		attention: qwenWindows(c, a, layers),
		ffn:       func(int64) part { return mlp.part() },
		rotary:    rotary(a.headDim),
	}
}

// qwenWindows is the attention of Qwen 2 and 3 per layer: from layer
// max_window_layers on it slides, if use_sliding_window says so.
func qwenWindows(c *config, a attention, layers int64) func(int64) part {
	w := qwenWindow(c)
	from := c.dim(28, "max_window_layers")
	return a.windows(layerTypes(c, layers, func(i int64) bool { return w > 0 && i >= from }), w)
}

// qwenWindow is sliding_window where use_sliding_window is set.
func qwenWindow(c *config) int64 {
	if !c.flag("use_sliding_window") {
		return 0
	}
	return window(c, 4096)
}
