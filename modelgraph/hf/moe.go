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
func routed(c *config, m moe, topK int64) moe {
	m.topK = c.pos(topK, "num_experts_per_tok")
	if m.experts > 0 && m.topK > m.experts {
		c.fail("num_experts_per_tok", "a token cannot go to %d of %d experts", m.topK, m.experts)
	}
	return m
}

func (m moe) op() modelgraph.MoE {
	return modelgraph.MoE{
		Dim: m.dim, Hidden: m.hidden, Experts: m.experts, TopK: m.topK,
		SharedHidden: m.shared, Activation: m.activation, FP32Routing: m.fp32Routing,
	}
}

// part has the experts before the router, and after it what every token passes.
func (m moe) part() part { return part{op: m.op(), params: modelgraph.Params(m.op(), nil)} }
