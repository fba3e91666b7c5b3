package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"mixtral"},
		class:   "MixtralForCausalLM",
		classes: causalClasses("Mixtral", sequenceClassification, tokenClassification, questionAnswering),
		unread:  []string{"router_jitter_noise"},
		build: func(modules *builder, cfg *config, class string) {
			mixtral(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
		},
	})
}

// mixtral reads a MixtralConfig (configuration_mixtral.py): a mistral with
// experts in every layer. num_experts, the alias, wins over
// num_local_experts (attribute_map).
func mixtral(cfg *config) *decoder {
	hidden := cfg.pos(4096, "hidden_size")
	attn := groupedAttention(cfg, hidden, headDefaults{q: 32, kv: 8})
	attn.window = readWindow(cfg, 0)
	experts := routed(cfg, moe{
		dim: hidden, hidden: cfg.pos(14336, "intermediate_size"),
		experts: cfg.pos(8, "num_experts", "num_local_experts"), activation: cfg.str("silu", "hidden_act"),
	}, 2)
	return &decoder{
		hidden: hidden, vocab: cfg.pos(32000, "vocab_size"), layers: cfg.count(32, "num_hidden_layers"),
		norm:      modelgraph.RMSNorm,
		attention: func(int64) part { return attn.part() },
		ffn: func(int64) part {
			p := experts.part()
			router := len(p.params) - 1 // stands first (MixtralSparseMoeBlock)
			p.params = append(p.params[router:], p.params[:router]...)
			return p
		},
		rotary: rotary(attn.headDim),
	}
}
