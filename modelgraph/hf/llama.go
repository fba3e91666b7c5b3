package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"llama"},
		class:   "LlamaForCausalLM",
		classes: causalClasses("Llama", sequenceClassification, tokenClassification, questionAnswering),
		build: func(b *builder, c *config, class string) {
			llama(c).causal(b, c, class, c.bool(false, "tie_word_embeddings"))
		},
	})
}

// llama reads a LlamaConfig (configuration_llama.py) as a decoder.
func llama(c *config) *decoder {
	h := c.pos(4096, "hidden_size")
	a := selfAttention(c, h, 32)
	a.bias = c.bool(false, "attention_bias")
	a.outBias = a.bias
	mlp := gatedMLP(c, h, 11008, "silu")
	mlp.bias = c.bool(false, "mlp_bias")
	return &decoder{
		hidden: h, vocab: c.pos(32000, "vocab_size"), layers: c.count(32, "num_hidden_layers"),
		norm:      modelgraph.RMSNorm,
		attention: func(int64) part { return a.part() },
		ffn:       func(int64) part { return mlp.part() },
		rotary:    rotary(a.headDim),
	}
}
