package hf

import (
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	register(family{
		runs:    true,
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
	attn.rotation = cfg.rotation(attn.headDim, 8192)
	attn.softCap = !cfg.null("attn_logit_softcapping") && cfg.float(50, "attn_logit_softcapping") != 0
	attn.scoreCap = cfg.softCap(50, "attn_logit_softcapping")
	d.attention = attn.windows(layerTypes(cfg, d.layers, alternate), readWindow(cfg, 4096))
	d.softCap = !cfg.null("final_logit_softcapping") && cfg.float(30, "final_logit_softcapping") != 0
	d.logitCap = cfg.softCap(30, "final_logit_softcapping")
	d.rotary = rotary(attn.headDim)
	return d
}

// softCap is the cap of a tanh, 0 where there is none: def where the field is
// absent, none where it is null.
func (cfg *config) softCap(def float64, name string) float64 {
	if cfg.isNull(name) {
		return 0
	}
	softCap := cfg.number(def, name)
	if _, there := cfg.members[name]; there && softCap == 0 {
		cfg.unsaid(name, "0 is not a cap: null is none")
	}
	return softCap
}

// gemmaSandwich is what Gemma 2 and 3 share; their defaults differ in the
// vocabulary alone.
func gemmaSandwich(cfg *config, vocab int64) (*decoder, attention) {
	hidden := cfg.pos(2304, "hidden_size")
	attn := gemmaAttention(cfg, hidden, headDefaults{q: 8, kv: 4, dim: 256})
	cfg.dividesHidden(hidden, attn.heads)
	attn.scale = gemmaScale(cfg)
	mlp := gatedMLP(cfg, hidden, 9216, "")
	mlp.activation = cfg.str("gelu_pytorch_tanh", "hidden_activation")
	vocab = cfg.pos(vocab, "vocab_size")
	return &decoder{
		hidden: hidden, vocab: vocab, layers: cfg.count(26, "num_hidden_layers"),
		norm: modelgraph.GemmaRMSNorm, epsilon: cfg.number(1e-6, "rms_norm_eps"), padding: cfg.padding(1, vocab),
		ffn:        func(int64) part { return mlp.part() },
		form:       gemmaBlock,
		embedScale: true,
	}, attn
}

// gemmaScale is query_pre_attn_scalar^-1/2 (modeling_gemma2.py:
// Gemma2Attention).
func gemmaScale(cfg *config) float64 {
	scalar := cfg.number(256, "query_pre_attn_scalar")
	if scalar == 0 {
		cfg.unsaid("query_pre_attn_scalar", "0 has no root to divide by")
		return 0
	}
	return 1 / math.Sqrt(scalar)
}
