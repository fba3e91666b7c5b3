package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"gemma"},
		class:   "GemmaForCausalLM",
		classes: causalClasses("Gemma", sequenceClassification, tokenClassification),
		build: func(b *builder, c *config, class string) {
			gemma(c).causal(b, c, class, c.bool(true, "tie_word_embeddings"))
		},
	})
}

// gemma reads a GemmaConfig (configuration_gemma.py): scaled embeddings, tied
// by default, norms of 1 + weight. hidden_activation, which older configs
// have, is not read.
func gemma(c *config) *decoder {
	h := c.pos(3072, "hidden_size")
	a := gemmaAttention(c, h, headDefaults{q: 16, kv: 16, dim: 256})
	mlp := gatedMLP(c, h, 24576, "gelu_pytorch_tanh")
	return &decoder{
		hidden: h, vocab: c.pos(256000, "vocab_size"), layers: c.count(28, "num_hidden_layers"),
		norm:       modelgraph.GemmaRMSNorm,
		attention:  func(int64) part { return a.part() },
		ffn:        func(int64) part { return mlp.part() },
		embedScale: true,
		rotary:     rotary(a.headDim),
	}
}

// gemmaAttention is the attention of all Gemmas (modeling_gemma.py:
// GemmaAttention).
func gemmaAttention(c *config, hidden int64, def headDefaults) attention {
	a := groupedAttention(c, hidden, def)
	a.bias = c.bool(false, "attention_bias")
	a.outBias = a.bias
	a.bidirectional = c.flag("use_bidirectional_attention")
	return a
}
