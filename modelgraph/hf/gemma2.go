package hf

import (
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

// gemma2: four norms a block, every second layer with a window, a soft cap on the logits.
//
// Before 5.21, Transformers picked scaled_dot_product_attention, which leaves the cap on attention
// scores out (sdpa_attention.py takes no softcap). Since, attention is eager, with a cap or without
// (modeling_gemma2.py: _supports_sdpa).
func gemma2(cfg *config) *decoder {
	cfg = cfg.filled("gemma2")
	model := gemmaSandwich(cfg)
	model.attn.rotation = cfg.rotation(model.attn.headDim, 0)
	model.attn.eager = cfg.since("5.21")
	model.attn.softCap = !cfg.null("attn_logit_softcapping") && cfg.float(50, "attn_logit_softcapping") != 0
	model.attn.scoreCap = cfg.softCap(50, "attn_logit_softcapping")
	model.sliding(readWindow(cfg, 4096), alternate)
	model.softCap = !cfg.null("final_logit_softcapping") && cfg.float(30, "final_logit_softcapping") != 0
	model.logitCap = cfg.softCap(30, "final_logit_softcapping")
	return model.done()
}

// softCap is the cap of a tanh, 0 if there is none: def if the field is absent, none if it is null.
func (cfg *fieldReader) softCap(def float64, name string) float64 {
	if cfg.isNull(name) {
		return 0
	}
	softCap := cfg.number(def, name)
	if _, there := cfg.members[name]; there && softCap == 0 {
		cfg.unsaid(name, "0 is not a cap: null is none")
	}
	return softCap
}

// gemmaSandwich is the common part of Gemma 2 and 3.
func gemmaSandwich(cfg *config) *parts {
	model := llamaParts(cfg)
	model.epsilon, model.padding = cfg.number(0, "rms_norm_eps"), cfg.padding(0, model.vocab)
	cfg.dividesHidden(model.hidden, model.attn.heads)
	model.norm, model.form, model.embedScale = modelgraph.GemmaRMSNorm, gemmaBlock, true
	model.attn.bidirectional, model.attn.scale = cfg.flag("use_bidirectional_attention"), gemmaScale(cfg)
	model.mlp.activation = cfg.str("gelu_pytorch_tanh", "hidden_activation")
	return model
}

// gemmaScale is query_pre_attn_scalar^-1/2 (modeling_gemma2.py: Gemma2Attention).
func gemmaScale(cfg *config) float64 {
	scalar := cfg.number(256, "query_pre_attn_scalar")
	if scalar == 0 {
		cfg.unsaid("query_pre_attn_scalar", "0 has no root to divide by")
		return 0
	}
	return 1 / math.Sqrt(scalar)
}
