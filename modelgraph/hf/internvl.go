package hf

func init() {
	register(family{
		types:   []string{"internvl"},
		class:   "InternVLForConditionalGeneration",
		classes: []string{"InternVLForConditionalGeneration", "InternVLModel"},
		unread:  []string{"vision_feature_select_strategy", "image_seq_length"},
		build: func(modules *builder, cfg *config, class string) {
			internVL(cfg).build(modules, cfg, class)
		},
		maxSeq: textMaxSeq,
	})
	register(family{
		types:   []string{"internvl_vision"},
		class:   "InternVLVisionModel",
		classes: []string{"InternVLVisionModel"},
		build: func(modules *builder, cfg *config, _ string) {
			internVLVision(cfg).build(modules, "")
		},
		maxSeq: func(*config) int64 { return 0 },
	})
}

// internVL reads an InternVLConfig (the -hf form): InternViT, a projector of pixel-shuffled
// patches, any language model. An image is one tile that the processor cuts.
func internVL(cfg *config) *multimodal {
	tower := internVLVision(cfg.sub("vision_config"))
	text := textModel(cfg.sub("text_config"), "qwen2")
	shuffle := pixelShuffle(cfg, tower.grid)
	wide := cfg.product("downsample_ratio", shuffle*shuffle, tower.dim)
	activation := cfg.str("gelu", "projector_hidden_act")
	return &multimodal{
		text: text, returned: true,
		tied: cfg.bool(true, "tie_word_embeddings"), // text_config's does not count
		features: func(modules *builder, path string) string {
			states := tower.build(modules, dot(path, "vision_tower"))
			image := hiddenState(cfg, "vision_feature_layer", states)
			projector := dot(path, "multi_modal_projector")
			modules.on(imageStream(max(1, tower.grid.count()/(shuffle*shuffle))), func() {
				image = addLayerNorm(modules, dot(projector, "layer_norm"), wide, image)
				image = addLinear(modules, dot(projector, "linear_1"), wide, text.hidden, activation, image)
				modules.empty(dot(projector, "act"))
				image = addLinear(modules, dot(projector, "linear_2"), text.hidden, text.hidden, "", image)
			})
			return image
		},
	}
}

// pixelShuffle reads downsample_ratio as the side, in patches, of the square whose patches become
// the channels of one token.
func pixelShuffle(cfg *config, grid patchGrid) int64 {
	r := cfg.float(0.5, "downsample_ratio")
	if !(r > 0 && r <= 1) {
		cfg.fail("downsample_ratio", "%v is not above 0 and at most 1", r)
		return 1
	}
	if 1/r >= float64(min(grid.rows, grid.columns)+1) {
		cfg.fail("downsample_ratio", "%v of %d × %d patches leaves none", r, grid.rows, grid.columns)
		return 1
	}
	return int64(1 / r)
}
