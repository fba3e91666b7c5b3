package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"mixtral"},
		class:   "MixtralForCausalLM",
		classes: causalClasses("Mixtral", sequenceClassification, tokenClassification, questionAnswering),
		unread:  []string{"router_jitter_noise"},
		build: func(b *builder, c *config, class string) {
			mixtral(c).causal(b, c, class, c.bool(false, "tie_word_embeddings"))
		},
	})
}

// mixtral reads a MixtralConfig (configuration_mixtral.py): a mistral with
// experts in every layer. num_experts, the alias, wins over
// num_local_experts (attribute_map).
func mixtral(c *config) *decoder {
	h := c.pos(4096, "hidden_size")
	a := groupedAttention(c, h, headDefaults{q: 32, kv: 8})
	a.window = window(c, 0)
	experts := routed(c, moe{
		dim: h, hidden: c.pos(14336, "intermediate_size"),
		experts: c.pos(8, "num_experts", "num_local_experts"), activation: c.str("silu", "hidden_act"),
	}, 2)
	return &decoder{
		hidden: h, vocab: c.pos(32000, "vocab_size"), layers: c.count(32, "num_hidden_layers"),
		norm:      modelgraph.RMSNorm,
		attention: func(int64) part { return a.part() },
		ffn: func(int64) part {
			p := experts.part()
			router := len(p.params) - 1 // stands first (MixtralSparseMoeBlock)
			p.params = append(p.params[router:], p.params[:router]...)
			return p
		},
		rotary: rotary(a.headDim),
	}
}
