package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		runs:    true,
		types:   []string{"llama"},
		class:   "LlamaForCausalLM",
		classes: causalClasses("Llama", sequenceClassification, tokenClassification, questionAnswering),
		build: func(modules *builder, cfg *config, class string) {
			llama(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
		},
	})
}

// llama reads a LlamaConfig (configuration_llama.py) as a decoder.
func llama(cfg *config) *decoder {
	hidden := cfg.pos(4096, "hidden_size")
	attn := selfAttention(cfg, hidden, 32)
	attn.bias = cfg.bool(false, "attention_bias")
	attn.outBias = attn.bias
	attn.rotation = cfg.rotation(attn.headDim, 2048)
	mlp := gatedMLP(cfg, hidden, 11008, "silu")
	mlp.bias = cfg.bool(false, "mlp_bias")
	vocab := cfg.pos(32000, "vocab_size")
	return &decoder{
		hidden: hidden, vocab: vocab, layers: cfg.count(32, "num_hidden_layers"),
		norm: modelgraph.RMSNorm, epsilon: cfg.number(1e-6, "rms_norm_eps"), padding: cfg.padding(0, vocab),
		attention: func(int64) part { return attn.part() },
		ffn:       func(int64) part { return mlp.part() },
		rotary:    rotary(attn.headDim),
	}
}
