package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"gpt_oss"},
		class:   "GptOssForCausalLM",
		classes: causalClasses("GptOss", sequenceClassification, tokenClassification),
		unread:  []string{"experts_per_token", "swiglu_limit", "initial_context_length"},
		build: func(b *builder, c *config, class string) {
			gptOSS(c).causal(b, c, class, c.bool(false, "tie_word_embeddings"))
		},
	})
}

// gptOSS reads a GptOssConfig (configuration_gpt_oss.py): biases everywhere,
// windows in every second layer, experts in all. The sinks, a logit per head
// beside the scores, keep its attention eager: it has no sdpa
// (modeling_gpt_oss.py: _supports_sdpa). num_experts, the alias, wins over
// num_local_experts.
func gptOSS(c *config) *decoder {
	h := c.pos(2880, "hidden_size")
	a := groupedAttention(c, h, headDefaults{q: 64, kv: 8, dim: 64})
	a.bias = c.bool(true, "attention_bias")
	a.outBias = a.bias
	a.sinks, a.eager = true, true
	experts := routed(c, moe{
		dim: h, hidden: c.pos(2880, "intermediate_size"),
		experts: c.pos(128, "num_experts", "num_local_experts"), activation: c.str("silu", "hidden_act"),
	}, 4)
	layers := c.count(36, "num_hidden_layers")
	return &decoder{
		hidden: h, vocab: c.pos(201088, "vocab_size"), layers: layers,
		norm:      modelgraph.RMSNorm,
		attention: a.windows(layerTypes(c, layers, alternate), window(c, 128)),
		ffn:       func(int64) part { return experts.gptOSS() },
		rotary:    rotary(a.headDim),
	}
}

// gptOSS lays the experts out as GptOssExperts does: input first, with
// biases, behind a router with a bias.
func (m moe) gptOSS() part {
	return part{op: m.op(), params: join(linear("router", m.dim, m.experts, true), []modelgraph.Tensor{
		tensor("experts.gate_up_proj", m.experts, m.dim, 2*m.hidden),
		tensor("experts.gate_up_proj_bias", m.experts, 2*m.hidden),
		tensor("experts.down_proj", m.experts, m.hidden, m.dim),
		tensor("experts.down_proj_bias", m.experts, m.dim),
	})}
}
