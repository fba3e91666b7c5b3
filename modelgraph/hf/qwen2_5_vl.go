package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"qwen2_5_vl"},
		class:   "Qwen2_5_VLForConditionalGeneration",
		classes: []string{"Qwen2_5_VLForConditionalGeneration", "Qwen2_5_VLModel"},
		build: func(modules *builder, cfg *config, class string) {
			text := qwenVLText(cfg)
			vision := qwenVision(cfg.sub("vision_config"))
			model := multimodal{
				text: qwenVLDecoder(text),
				// A tie written in text_config ties the whole model.
				tied: cfg.bool(false, "tie_word_embeddings") || text.bool(false, "tie_word_embeddings"),
				features: func(into *builder, path string) string {
					return vision.build(into, dot(path, "visual"))
				},
			}
			model.build(modules, cfg, class)
		},
		maxSeq: func(cfg *config) int64 { return qwenVLText(cfg).dim(0, "max_position_embeddings") },
	})
}

// qwenVLText is the object with the language model's fields: text_config, or the config itself as
// Transformers 4 wrote it (configuration_qwen2_5_vl.py: Qwen2_5_VLConfig).
func qwenVLText(cfg *config) *config {
	if cfg.has("text_config") {
		return cfg.sub("text_config")
	}
	return cfg
}

// qwenVLDecoder reads a Qwen2_5_VLTextConfig: a Qwen 2 with positions in three dimensions. head_dim
// sizes the rotary embedding alone.
func qwenVLDecoder(cfg *config) *decoder {
	cfg.kind("qwen2_5_vl", "qwen2_5_vl_text")
	hidden := cfg.pos(8192, "hidden_size")
	attn := groupedAttention(cfg, hidden, headDefaults{q: 64, kv: 8})
	cfg.dividesHidden(hidden, attn.heads)
	rotaryDim := attn.headDim
	attn.headDim, attn.bias, attn.ropeRows = max(1, hidden/attn.heads), true, true
	mlp := gatedMLP(cfg, hidden, 29568, "silu")
	layers, width := cfg.count(80, "num_hidden_layers"), qwenWindow(cfg)
	from := cfg.dim(80, "max_window_layers")
	types := layerTypes(cfg, layers, func(i int64) bool { return width > 0 && i >= from })
	return &decoder{
		hidden: hidden, vocab: cfg.pos(152064, "vocab_size"), layers: layers,
		norm:      modelgraph.RMSNorm,
		attention: attn.windows(types, width),
		ffn:       func(int64) part { return mlp.part() },
		rotary:    rotaryRows(rotaryDim),
	}
}
