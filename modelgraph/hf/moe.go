package hf

import "github.com/devmap-dev/devmap/modelgraph"

// moe is a router and experts whose weights are stacked in one tensor per
// projection (modeling_mixtral.py: MixtralExperts and its siblings). Families
// register the parts in different orders ([modelgraph.Params] in Qwen3's and
// DeepSeek-V3's).
type moe struct {
	dim, hidden, experts, topK, shared int64
	activation                         string
	fp32Routing                        bool
}

// routed reads num_experts_per_tok and checks it against the experts.
func routed(cfg *config, experts moe, topK int64) moe {
	experts.topK = cfg.pos(topK, "num_experts_per_tok")
	if experts.experts > 0 && experts.topK > experts.experts {
		cfg.fail("num_experts_per_tok", "a token cannot go to %d of %d experts", experts.topK, experts.experts)
	}
	return experts
}

func (experts moe) op() modelgraph.MoE {
	return modelgraph.MoE{
		Dim: experts.dim, Hidden: experts.hidden, Experts: experts.experts, TopK: experts.topK,
		SharedHidden: experts.shared, Activation: experts.activation, FP32Routing: experts.fp32Routing,
	}
}

// part has the experts before the router, and after it what every token passes.
func (experts moe) part() part {
	return part{op: experts.op(), params: modelgraph.Params(experts.op(), nil)}
}
