package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"gemma2"},
		class:   "Gemma2ForCausalLM",
		classes: causalClasses("Gemma2", sequenceClassification, tokenClassification),
		build: func(modules *builder, cfg *config, class string) {
			gemma2(cfg).causal(modules, cfg, class, cfg.bool(true, "tie_word_embeddings"))
		},
	})
}

// gemma2 reads a Gemma2Config (configuration_gemma2.py): four norms a block,
// every second layer with a window, a soft cap on the logits.
//
// The cap on attention scores does not make the attention eager: Transformers
// picks scaled_dot_product_attention, which leaves the cap out
// (modeling_gemma2.py: _supports_sdpa; sdpa_attention.py takes no softcap).
func gemma2(cfg *config) *decoder {
	d, attn := gemmaSandwich(cfg, 256000)
	attn.softCap = !cfg.null("attn_logit_softcapping") && cfg.float(50, "attn_logit_softcapping") != 0
	d.attention = attn.windows(layerTypes(cfg, d.layers, alternate), readWindow(cfg, 4096))
	d.softCap = !cfg.null("final_logit_softcapping") && cfg.float(30, "final_logit_softcapping") != 0
	d.rotary = rotary(attn.headDim)
	return d
}

// gemmaSandwich is what Gemma 2 and 3 share; their defaults differ in the
// vocabulary alone.
func gemmaSandwich(cfg *config, vocab int64) (*decoder, attention) {
	hidden := cfg.pos(2304, "hidden_size")
	attn := gemmaAttention(cfg, hidden, headDefaults{q: 8, kv: 4, dim: 256})
	cfg.dividesHidden(hidden, attn.heads)
	mlp := gatedMLP(cfg, hidden, 9216, "")
	mlp.activation = cfg.str("gelu_pytorch_tanh", "hidden_activation")
	return &decoder{
		hidden: hidden, vocab: cfg.pos(vocab, "vocab_size"), layers: cfg.count(26, "num_hidden_layers"),
		norm:       modelgraph.GemmaRMSNorm,
		ffn:        func(int64) part { return mlp.part() },
		sandwich:   true,
		embedScale: true,
	}, attn
}
