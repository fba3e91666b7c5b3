package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"qwen3"},
		class:   "Qwen3ForCausalLM",
		classes: causalClasses("Qwen3", sequenceClassification, tokenClassification, questionAnswering),
		build: func(b *builder, c *config, class string) {
			qwen3(c).causal(b, c, class, c.bool(false, "tie_word_embeddings"))
		},
	})
}

// qwen3 reads a Qwen3Config (configuration_qwen3.py): norms on q and k, a
// head width of its own, biases on request.
func qwen3(c *config) *decoder {
	h := c.pos(4096, "hidden_size")
	a := qwen3Attention(c, h, headDefaults{q: 32, kv: 32, dim: 128})
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

// qwen3Attention is modeling_qwen3.py: Qwen3Attention.
func qwen3Attention(c *config, hidden int64, def headDefaults) attention {
	a := groupedAttention(c, hidden, def)
	a.bias = c.bool(false, "attention_bias")
	a.outBias = a.bias
	a.qkNorm = modelgraph.RMSNorm
	return a
}
