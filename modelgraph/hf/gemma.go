package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		runs:    true,
		types:   []string{"gemma"},
		class:   "GemmaForCausalLM",
		classes: causalClasses("Gemma", sequenceClassification, tokenClassification),
		build: func(modules *builder, cfg *config, class string) {
			gemma(cfg).causal(modules, cfg, class, cfg.bool(true, "tie_word_embeddings"))
		},
	})
}

// gemma reads a GemmaConfig (configuration_gemma.py): scaled embeddings, tied
// by default, norms of 1 + weight. hidden_activation, which older configs
// have, is not read.
func gemma(cfg *config) *decoder {
	hidden := cfg.pos(3072, "hidden_size")
	attn := gemmaAttention(cfg, hidden, headDefaults{q: 16, kv: 16, dim: 256})
	attn.rotation = cfg.rotation(attn.headDim, 8192)
	mlp := gatedMLP(cfg, hidden, 24576, "gelu_pytorch_tanh")
	vocab := cfg.pos(256000, "vocab_size")
	return &decoder{
		hidden: hidden, vocab: vocab, layers: cfg.count(28, "num_hidden_layers"),
		norm: modelgraph.GemmaRMSNorm, epsilon: cfg.number(1e-6, "rms_norm_eps"), padding: cfg.padding(1, vocab),
		attention:  func(int64) part { return attn.part() },
		ffn:        func(int64) part { return mlp.part() },
		embedScale: true,
		rotary:     rotary(attn.headDim),
	}
}

// gemmaAttention is the attention of all Gemmas (modeling_gemma.py:
// GemmaAttention).
func gemmaAttention(cfg *config, hidden int64, def headDefaults) attention {
	attn := groupedAttention(cfg, hidden, def)
	attn.bias = cfg.bool(false, "attention_bias")
	attn.outBias = attn.bias
	attn.bidirectional = cfg.flag("use_bidirectional_attention")
	return attn
}
