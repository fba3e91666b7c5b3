package hf

func init() {
	register(family{
		types:   []string{"internvl"},
		class:   "InternVLForConditionalGeneration",
		classes: []string{"InternVLForConditionalGeneration", "InternVLModel"},
		unread:  []string{"vision_feature_select_strategy", "image_seq_length"},
		build: func(b *builder, c *config, class string) {
			internVL(c).build(b, c, class)
		},
		maxSeq: textMaxSeq,
	})
	register(family{
		types:   []string{"internvl_vision"},
		class:   "InternVLVisionModel",
		classes: []string{"InternVLVisionModel"},
		build: func(b *builder, c *config, _ string) {
			internVLVision(c).build(b, "")
		},
		maxSeq: func(*config) int64 { return 0 },
	})
}

// internVL reads an InternVLConfig, the form with the suffix -hf: InternViT,
// a projector of pixel-shuffled patches, any language model. An image is one
// tile of the image that the processor cuts up.
func internVL(c *config) *multimodal {
	tower := internVLVision(c.sub("vision_config"))
	text := textModel(c.sub("text_config"), "qwen2")
	shuffle := pixelShuffle(c, tower.grid)
	wide := c.product("downsample_ratio", shuffle*shuffle, tower.dim)
	activation := c.str("gelu", "projector_hidden_act")
	return &multimodal{
		text: text, returned: true,
		tied: c.bool(true, "tie_word_embeddings"), // text_config's does not count
		features: func(b *builder, path string) string {
			states := tower.build(b, dot(path, "vision_tower"))
			image := hiddenState(c, "vision_feature_layer", states)
			projector := dot(path, "multi_modal_projector")
			b.on(imageStream(max(1, tower.grid.count()/(shuffle*shuffle))), func() {
				image = addLayerNorm(b, dot(projector, "layer_norm"), wide, image)
				image = addLinear(b, dot(projector, "linear_1"), wide, text.hidden, activation, image)
				b.empty(dot(projector, "act"))
				image = addLinear(b, dot(projector, "linear_2"), text.hidden, text.hidden, "", image)
			})
			return image
		},
	}
}

// pixelShuffle reads downsample_ratio as the side, in patches, of the square
// whose patches become the channels of one token.
func pixelShuffle(c *config, g patchGrid) int64 {
	r := c.float(0.5, "downsample_ratio")
	if !(r > 0 && r <= 1) {
		c.fail("downsample_ratio", "%v is not above 0 and at most 1", r)
		return 1
	}
	if 1/r >= float64(min(g.rows, g.columns)+1) {
		c.fail("downsample_ratio", "%v of %d × %d patches leaves none", r, g.rows, g.columns)
		return 1
	}
	return int64(1 / r)
}
