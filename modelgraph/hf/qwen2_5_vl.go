package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"qwen2_5_vl"},
		class:   "Qwen2_5_VLForConditionalGeneration",
		classes: []string{"Qwen2_5_VLForConditionalGeneration", "Qwen2_5_VLModel"},
		build: func(b *builder, c *config, class string) {
			text := qwenVLText(c)
			vision := qwenVision(c.sub("vision_config"))
			m := multimodal{
				text: qwenVLDecoder(text),
				// A tie written in text_config ties the whole model.
				tied: c.bool(false, "tie_word_embeddings") || text.bool(false, "tie_word_embeddings"),
				features: func(b *builder, path string) string {
					return vision.build(b, dot(path, "visual"))
				},
			}
			m.build(b, c, class)
		},
		maxSeq: func(c *config) int64 { return qwenVLText(c).dim(0, "max_position_embeddings") },
	})
}

// qwenVLText is the object with the language model's fields: text_config,
// or the config itself as Transformers 4 wrote it
// (configuration_qwen2_5_vl.py: Qwen2_5_VLConfig).
func qwenVLText(c *config) *config {
	if c.has("text_config") {
		return c.sub("text_config")
	}
	return c
}

// qwenVLDecoder reads a Qwen2_5_VLTextConfig: a Qwen 2 with positions in
// three dimensions. head_dim sizes the rotary embedding alone.
func qwenVLDecoder(c *config) *decoder {
	c.kind("qwen2_5_vl", "qwen2_5_vl_text")
	h := c.pos(8192, "hidden_size")
	a := groupedAttention(c, h, headDefaults{q: 64, kv: 8})
	c.dividesHidden(h, a.heads)
	rotaryDim := a.headDim
	a.headDim, a.bias, a.ropeRows = max(1, h/a.heads), true, true
	mlp := gatedMLP(c, h, 29568, "silu")
	layers, w := c.count(80, "num_hidden_layers"), qwenWindow(c)
	from := c.dim(80, "max_window_layers")
	types := layerTypes(c, layers, func(i int64) bool { return w > 0 && i >= from })
	return &decoder{
		hidden: h, vocab: c.pos(152064, "vocab_size"), layers: layers,
		norm:      modelgraph.RMSNorm,
		attention: a.windows(types, w),
		ffn:       func(int64) part { return mlp.part() },
		rotary:    rotaryRows(rotaryDim),
	}
}
