package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"gemma2"},
		class:   "Gemma2ForCausalLM",
		classes: causalClasses("Gemma2", sequenceClassification, tokenClassification),
		build: func(b *builder, c *config, class string) {
			gemma2(c).causal(b, c, class, c.bool(true, "tie_word_embeddings"))
		},
	})
}

// gemma2 reads a Gemma2Config (configuration_gemma2.py): four norms a block,
// every second layer with a window, a soft cap on the logits.
//
// The cap on attention scores does not make the attention eager: Transformers
// picks scaled_dot_product_attention, which leaves the cap out
// (modeling_gemma2.py: _supports_sdpa; sdpa_attention.py takes no softcap).
func gemma2(c *config) *decoder {
	d, a := gemmaSandwich(c, 256000)
	a.softCap = !c.null("attn_logit_softcapping") && c.float(50, "attn_logit_softcapping") != 0
	d.attention = a.windows(layerTypes(c, d.layers, alternate), window(c, 4096))
	d.softCap = !c.null("final_logit_softcapping") && c.float(30, "final_logit_softcapping") != 0
	d.rotary = rotary(a.headDim)
	return d
}

// gemmaSandwich is what Gemma 2 and 3 share; their defaults differ in the
// vocabulary alone.
func gemmaSandwich(c *config, vocab int64) (*decoder, attention) {
	h := c.pos(2304, "hidden_size")
	a := gemmaAttention(c, h, headDefaults{q: 8, kv: 4, dim: 256})
	c.dividesHidden(h, a.heads)
	mlp := gatedMLP(c, h, 9216, "")
	mlp.activation = c.str("gelu_pytorch_tanh", "hidden_activation")
	return &decoder{
		hidden: h, vocab: c.pos(vocab, "vocab_size"), layers: c.count(26, "num_hidden_layers"),
		norm:       modelgraph.GemmaRMSNorm,
		ffn:        func(int64) part { return mlp.part() },
		sandwich:   true,
		embedScale: true,
	}, a
}
