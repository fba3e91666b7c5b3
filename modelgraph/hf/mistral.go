package hf

// mistral: every layer has the same sliding window, and no biases.
func mistral(cfg *config) *decoder {
	cfg = cfg.filled("mistral")
	model := runningParts(cfg)
	model.attn.window = readWindow(cfg, 0)
	return model.done()
}
