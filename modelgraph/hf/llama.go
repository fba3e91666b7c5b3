package hf

// llama is modeling_llama.py. Heads must divide the hidden size
// (validate_architecture).
func llama(cfg *config) *decoder {
	cfg = cfg.filled("llama")
	model := runningParts(cfg)
	cfg.dividesHidden(model.hidden, model.attn.heads)
	return model.done()
}
