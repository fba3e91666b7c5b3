package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"mistral"},
		class:   "MistralForCausalLM",
		classes: causalClasses("Mistral", sequenceClassification, tokenClassification, questionAnswering),
		build: func(b *builder, c *config, class string) {
			mistral(c).causal(b, c, class, c.bool(false, "tie_word_embeddings"))
		},
	})
}

// mistral reads a MistralConfig (configuration_mistral.py): a llama whose
// every layer has the same sliding window.
func mistral(c *config) *decoder {
	h := c.pos(4096, "hidden_size")
	a := groupedAttention(c, h, headDefaults{q: 32, kv: 8})
	a.window = window(c, 4096)
	mlp := gatedMLP(c, h, 14336, "silu")
	return &decoder{
		hidden: h, vocab: c.pos(32000, "vocab_size"), layers: c.count(32, "num_hidden_layers"),
		norm:      modelgraph.RMSNorm,
		attention: func(int64) part { return a.part() },
		ffn:       func(int64) part { return mlp.part() },
		rotary:    rotary(a.headDim),
	}
}
