package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	visionLanguage("qwen2_vl", "Qwen2VL", func(cfg *config) *multimodal { return qwenVL(cfg, qwen2VLText, qwen2VLTower) })
	visionLanguage("qwen3_vl", "Qwen3VL", func(cfg *config) *multimodal { return qwenVL(cfg, qwen3VLText, qwen3VLTower) })
	visionLanguage("qwen3_vl_moe", "Qwen3VLMoe", func(cfg *config) *multimodal { return qwenVL(cfg, qwen3VLMoEText, qwen3VLTower) })
	visionLanguage("qwen3_5", "Qwen3_5", func(cfg *config) *multimodal { return qwenVL(cfg, turningRows(qwen35), qwen3VLTower) },
		"For"+sequenceClassification, "For"+tokenClassification)
	visionLanguage("qwen3_5_moe", "Qwen3_5Moe", func(cfg *config) *multimodal { return qwenVL(cfg, turningRows(qwen35MoE), qwen3VLTower) })
}

// visionLanguage registers a family of XForConditionalGeneration and XModel that the table of
// config classes fills, and of the classes of tasks.
func visionLanguage(model, name string, read func(*config) *multimodal, tasks ...string) {
	classes := []string{name + "ForConditionalGeneration", name + "Model"}
	for _, task := range tasks {
		classes = append(classes, name+task)
	}
	register(family{
		types: []string{model}, table: true,
		class: name + "ForConditionalGeneration", classes: classes,
		build:  func(modules *builder, cfg *config, class string) { read(cfg).build(modules, cfg, class) },
		maxSeq: func(cfg *config) int64 { return cfg.textPart().dim(0, "max_position_embeddings") },
	})
}

// textPart is the object with the language model's fields: text_config, or the config itself as
// Transformers 4 wrote Qwen2-VL's (configuration_qwen2_vl.py: Qwen2VLConfig).
func (cfg *config) textPart() *config {
	if rule := cfg.class.Parts["text_config"]; cfg.class.Type == "qwen2_vl" && !cfg.has("text_config") {
		flat := *cfg
		flat.class = nil
		return flat.filled(rule.Type)
	}
	return cfg.part("text_config")
}

// qwenVL is a Qwen with a tower whose images have any size.
func qwenVL(cfg *config, text func(*config) *decoder, tower func(*config) *qwenTower) *multimodal {
	words, vision := cfg.textPart(), tower(cfg.part("vision_config"))
	model := &multimodal{
		text: text(words),
		// A tie written in text_config ties the whole model.
		tied: cfg.bool(false, "tie_word_embeddings") || cfg.class.Type == "qwen2_vl" && words.flag("tie_word_embeddings"),
	}
	model.features = func(modules *builder, path string) string {
		image := vision.build(modules, dot(path, "visual"))
		model.deep = vision.deepNames(dot(path, "visual"))
		return image
	}
	return model
}

// turningRows: positions have three dimensions, so that cosines and sines have a row a sequence.
func turningRows(read func(*config) *decoder) func(*config) *decoder {
	return func(cfg *config) *decoder {
		d := read(cfg)
		if op, ok := d.rotary.Op.(modelgraph.Rotary); ok {
			op.Rows = true
			d.rotary.Op = op
		}
		attention := d.attention
		d.attention = func(layer int64) part {
			p := attention(layer)
			if op, ok := p.op.(modelgraph.Attention); ok {
				op.RopeRows = true
				p.op = op
			}
			return p
		}
		return d
	}
}

func qwen2VLText(cfg *config) *decoder {
	model := llamaParts(cfg)
	cfg.dividesHidden(model.hidden, model.attn.heads)
	model.attn.headDim = max(1, model.hidden/model.attn.heads)
	model.attn.bias, model.attn.outBias = true, false
	width, from := qwenWindow(cfg), cfg.orZero("max_window_layers")
	model.sliding(width, func(i int64) bool { return width > 0 && i >= from })
	return turningRows(func(*config) *decoder { return model.done() })(cfg)
}

func qwen3VLText(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.qkNorm = modelgraph.RMSNorm
	return turningRows(func(*config) *decoder { return model.done() })(cfg)
}

func qwen3VLMoEText(cfg *config) *decoder {
	model := llamaParts(cfg)
	model.attn.qkNorm = modelgraph.RMSNorm
	model.ffn = qwen3MoEBlocks(cfg, model.hidden)
	return turningRows(func(*config) *decoder { return model.done() })(cfg)
}

// qwen2VLTower reads a Qwen2VLVisionConfig: every patch sees every other; hidden_size is the output
// width.
func qwen2VLTower(cfg *config) *qwenTower {
	tower := qwenPatches(cfg, cfg.pos(0, "embed_dim"), cfg.pos(0, "hidden_size"))
	inner := cfg.product("mlp_ratio", tower.dim, cfg.pos(0, "mlp_ratio"))
	tower.blocks(cfg, inner, "fc1", "fc2")
	tower.merger = mergerNames{norm: "merger.ln_q", in: "merger.mlp.0", act: "merger.mlp.1", out: "merger.mlp.2"}
	return tower
}

// qwen3VLTower reads a Qwen3VLVisionConfig or a Qwen3_5VisionConfig: learned positions, and of some
// blocks features that are added to the language model's first layers.
func qwen3VLTower(cfg *config) *qwenTower {
	tower := qwenPatches(cfg, cfg.pos(0, "hidden_size"), cfg.pos(0, "out_hidden_size"))
	tower.patchBias, tower.positions = true, cfg.pos(0, "num_position_embeddings")
	tower.blocks(cfg, cfg.pos(0, "intermediate_size"), "linear_fc1", "linear_fc2")
	tower.merger = mergerNames{norm: "merger.norm", in: "merger.linear_fc1", act: "merger.act_fn", out: "merger.linear_fc2"}
	if cfg.classHas("deepstack_visual_indexes") {
		tower.deep = cfg.dims("deepstack_visual_indexes")
	}
	return tower
}

// qwenPatches reads the common fields of Qwen2-VL's and Qwen3-VL's towers.
func qwenPatches(cfg *config, dim, out int64) *qwenTower {
	merge := side(cfg, 2, "spatial_merge_size")
	tower := &qwenTower{
		dim: dim, channels: cfg.pos(0, "in_channels"), out: out,
		patch: side(cfg, 14, "patch_size"), frames: side(cfg, 2, "temporal_patch_size"), merge: merge, merged: merge * merge,
	}
	tower.wide = cfg.product("spatial_merge_size", tower.merged, dim)
	tower.tokens = max(1, qwenImagePixels/(tower.patch*merge)/(tower.patch*merge))
	return tower
}

// blocks are LayerNorms, attention with one matrix for q, k and v, and an ungated feed-forward.
func (tower *qwenTower) blocks(cfg *config, inner int64, up, down string) {
	op := visionAttention(cfg, tower.dim, 0, "num_heads")
	op.Fused, op.Rope, op.Packed = true, true, true
	tower.rotaryDim = cfg.orNull(0, op.HeadDim, "head_dim")
	params := join(linearParams("qkv", tower.dim, 3*tower.dim, true), linearParams("proj", tower.dim, tower.dim, true))
	tower.stack = &visionStack{
		dim: tower.dim, layers: cfg.depth(0), norm: modelgraph.LayerNorm,
		attention: func(int64) part { return part{op: op, params: params} },
		mlp:       feedForward{dim: tower.dim, hidden: inner, activation: cfg.str("", "hidden_act"), bias: true, up: up, down: down}.part(),
		attnNorm:  "norm1", attn: "attn", mlpNorm: "norm2", mlpName: "mlp",
		order: []string{"norm1", "norm2", "attn", "mlp"},
	}
}
