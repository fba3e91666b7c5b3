package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"gpt_oss"},
		class:   "GptOssForCausalLM",
		classes: causalClasses("GptOss", sequenceClassification, tokenClassification),
		unread:  []string{"experts_per_token", "swiglu_limit", "initial_context_length"},
		build: func(modules *builder, cfg *config, class string) {
			gptOSS(cfg).causal(modules, cfg, class, cfg.bool(false, "tie_word_embeddings"))
		},
	})
}

// gptOSS reads a GptOssConfig (configuration_gpt_oss.py): biases everywhere,
// windows in every second layer, experts in all. The sinks, a logit per head
// beside the scores, keep its attention eager: it has no sdpa
// (modeling_gpt_oss.py: _supports_sdpa). num_experts, the alias, wins over
// num_local_experts.
func gptOSS(cfg *config) *decoder {
	hidden := cfg.pos(2880, "hidden_size")
	attn := groupedAttention(cfg, hidden, headDefaults{q: 64, kv: 8, dim: 64})
	attn.bias = cfg.bool(true, "attention_bias")
	attn.outBias = attn.bias
	attn.sinks, attn.eager = true, true
	experts := routed(cfg, moe{
		dim: hidden, hidden: cfg.pos(2880, "intermediate_size"),
		experts: cfg.pos(128, "num_experts", "num_local_experts"), activation: cfg.str("silu", "hidden_act"),
	}, 4)
	layers := cfg.count(36, "num_hidden_layers")
	return &decoder{
		hidden: hidden, vocab: cfg.pos(201088, "vocab_size"), layers: layers,
		norm:      modelgraph.RMSNorm,
		attention: attn.windows(layerTypes(cfg, layers, alternate), readWindow(cfg, 128)),
		ffn:       func(int64) part { return experts.gptOSS() },
		rotary:    rotary(attn.headDim),
	}
}

// gptOSS lays the experts out as GptOssExperts does: input first, with
// biases, behind a router with a bias.
func (experts moe) gptOSS() part {
	return part{op: experts.op(), params: join(linearParams("router", experts.dim, experts.experts, true), []modelgraph.Tensor{
		tensor("experts.gate_up_proj", experts.experts, experts.dim, 2*experts.hidden),
		tensor("experts.gate_up_proj_bias", experts.experts, 2*experts.hidden),
		tensor("experts.down_proj", experts.experts, experts.hidden, experts.dim),
		tensor("experts.down_proj_bias", experts.experts, experts.dim),
	})}
}
