package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		runs:    true,
		types:   []string{"mistral"},
		class:   "MistralForCausalLM",
		classes: causalClasses("Mistral", sequenceClassification, tokenClassification, questionAnswering),
		build: func(modules *builder, cfg *config, class string) {
			mistral(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
		},
	})
}

// mistral reads a MistralConfig (configuration_mistral.py): a llama whose
// every layer has the same sliding window.
func mistral(cfg *config) *decoder {
	hidden := cfg.pos(4096, "hidden_size")
	attn := groupedAttention(cfg, hidden, headDefaults{q: 32, kv: 8})
	attn.window = readWindow(cfg, 4096)
	attn.rotation = cfg.rotation(attn.headDim, 131072)
	mlp := gatedMLP(cfg, hidden, 14336, "silu")
	vocab := cfg.pos(32000, "vocab_size")
	return &decoder{
		hidden: hidden, vocab: vocab, layers: cfg.count(32, "num_hidden_layers"),
		norm: modelgraph.RMSNorm, epsilon: cfg.number(1e-6, "rms_norm_eps"), padding: cfg.padding(0, vocab),
		attention: func(int64) part { return attn.part() },
		ffn:       func(int64) part { return mlp.part() },
		rotary:    rotary(attn.headDim),
	}
}
