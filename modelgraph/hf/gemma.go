package hf

import "github.com/devmap-dev/devmap/modelgraph"

// gemma: scaled embeddings, norms of 1 + weight. It ignores older configs' hidden_activation.
func gemma(cfg *config) *decoder {
	cfg = cfg.filled("gemma")
	model := runningParts(cfg)
	model.norm, model.embedScale = modelgraph.GemmaRMSNorm, true
	model.attn.bidirectional = cfg.flag("use_bidirectional_attention")
	return model.done()
}
