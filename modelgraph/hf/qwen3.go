package hf

import "github.com/devmap-dev/devmap/modelgraph"

// qwen3: norms on q and k, a separate head width, optional biases.
func qwen3(cfg *config) *decoder {
	cfg = cfg.filled("qwen3")
	model := runningParts(cfg)
	model.qkNorms(modelgraph.RMSNorm)
	model.qwenWindows()
	return model.done()
}

// qkNorms are q_norm and k_norm, over each head.
func (model *parts) qkNorms(style modelgraph.NormStyle) {
	model.attn.qkNorm, model.attn.qkEpsilon = style, model.epsilon
}
