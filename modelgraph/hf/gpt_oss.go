package hf

import "github.com/devmap-dev/devmap/modelgraph"

// gptOSS: biases everywhere, windows in every second layer, experts in all. The sinks, a logit per
// head next to the scores, keep its attention eager: it has no sdpa (modeling_gpt_oss.py:
// _supports_sdpa). num_experts, the alias, wins over num_local_experts.
func gptOSS(cfg *config) *decoder {
	cfg = cfg.filled("gpt_oss")
	model := llamaParts(cfg)
	model.attn.sinks, model.attn.eager, model.attn.ownScores, model.normFP32 = true, true, true, true
	experts := routed(cfg, moe{
		dim: model.hidden, hidden: model.mlp.hidden, experts: cfg.pos(0, "num_experts", "num_local_experts"), activation: model.mlp.activation,
		clamped: true, castWeights: true,
	}, 0)
	model.sliding(readWindow(cfg, 0), alternate)
	model.ffn = func(int64) part { return experts.gptOSS() }
	return model.done()
}

// gptOSS is GptOssExperts: matrices lie input first and have biases; the router has a bias too.
func (experts moe) gptOSS() part {
	return part{op: experts.op(), params: join(linearParams("router", experts.dim, experts.experts, true), []modelgraph.Tensor{
		tensor("experts.gate_up_proj", experts.experts, experts.dim, 2*experts.hidden),
		tensor("experts.gate_up_proj_bias", experts.experts, 2*experts.hidden),
		tensor("experts.down_proj", experts.experts, experts.hidden, experts.dim),
		tensor("experts.down_proj_bias", experts.experts, experts.dim),
	})}
}
