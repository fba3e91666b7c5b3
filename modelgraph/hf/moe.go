package hf

import "github.com/devmap-dev/devmap/modelgraph"

// moe is a router and experts whose weights are stacked in one tensor per projection
// (modeling_mixtral.py: MixtralExperts and its siblings). Families register the parts in different
// orders ([modelgraph.Params] in Qwen3's and DeepSeek-V3's).
type moe struct {
	dim, hidden, experts, topK, shared int64
	activation                         string
	fp32Routing, castWeights           bool
	clamped, dense                     bool
	names                              moeNames // zero: Qwen3's
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
		SharedHidden: experts.shared, Activation: experts.activation, FP32Routing: experts.fp32Routing, CastWeights: experts.castWeights, Clamped: experts.clamped, Dense: experts.dense,
	}
}

// part has the experts before the router and the shared expert after it, or the modules of names.
func (experts moe) part() part {
	if experts.names.router == "" {
		return part{op: experts.op(), params: modelgraph.Params(experts.op(), nil)}
	}
	return experts.spelled()
}

// moeNames are the modules of a mixture with other names, another order or shared expert.
type moeNames struct {
	router string // in front of the experts, unless last
	last   bool   // after them
	shared string // the module that every token passes
	// sharedGate scales its result by a number a token.
	sharedGate string
	sharedBias bool
	// correction is the router's buffer of a bias for each expert.
	correction string
}

func (experts moe) spelled() part {
	names := experts.names
	router := []modelgraph.Tensor{tensor(dot(names.router, "weight"), experts.experts, experts.dim)}
	stacked := []modelgraph.Tensor{
		tensor("experts.gate_up_proj", experts.experts, 2*experts.hidden, experts.dim),
		tensor("experts.down_proj", experts.experts, experts.dim, experts.hidden),
	}
	var shared []modelgraph.Tensor
	if names.shared != "" && experts.shared > 0 {
		shared = feedForward{dim: experts.dim, hidden: experts.shared, bias: names.sharedBias, activation: experts.activation}.under(names.shared)
	}
	if names.sharedGate != "" {
		shared = append(shared, tensor(dot(names.sharedGate, "weight"), 1, experts.dim))
	}
	p := part{op: experts.op(), params: join(router, stacked, shared)}
	if names.last {
		p.params = join(stacked, router, shared)
	}
	if names.correction != "" {
		p.buffers = []modelgraph.Tensor{tensor(names.correction, experts.experts)}
	}
	return p
}
