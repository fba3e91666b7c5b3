package hf

import "strings"

// qwen2: biases on q, k and v (modeling_qwen2.py: Qwen2Attention).
func qwen2(cfg *config) *decoder {
	cfg = cfg.filled("qwen2")
	model := runningParts(cfg)
	model.attn.bias = true
	model.qwenWindows()
	if names := cfg.strs("architectures"); len(names) > 0 && strings.HasSuffix(names[0], "RewardModel") {
		cfg.unsaid("architectures", "names a class of which sizes alone are known")
	}
	return model.done()
}

// qwenWindows is the attention of Qwen 2 and 3 per layer: with use_sliding_window it slides from
// layer max_window_layers on.
func (model *parts) qwenWindows() {
	width := qwenWindow(model.cfg)
	from := model.cfg.dim(28, "max_window_layers")
	model.sliding(width, func(i int64) bool { return width > 0 && i >= from })
}

// qwenWindow is sliding_window if use_sliding_window is set.
func qwenWindow(cfg *config) int64 {
	if !cfg.flag("use_sliding_window") {
		return 0
	}
	return readWindow(cfg, 4096)
}
