package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types: []string{"clip"}, table: true, class: "CLIPModel", classes: []string{"CLIPModel", "CLIPForImageClassification"},
		build:  buildClip,
		unread: []string{"text_config_dict", "vision_config_dict"}, // of a part that a class may lack
		maxSeq: func(cfg *config) int64 { return clipPart(cfg, "text_config").dim(0, "max_position_embeddings") },
	})
	register(family{
		types: []string{"siglip"}, table: true, class: "SiglipModel", classes: []string{"SiglipModel", "SiglipForImageClassification"},
		build: func(modules *builder, cfg *config, class string) {
			if class == "SiglipForImageClassification" {
				classifyImages(modules, cfg, siglipImages(cfg.part("vision_config")))
				return
			}
			modules.add("logit_scale", modelgraph.Parameter{}, nil, tensor("", 1))
			modules.add("logit_bias", modelgraph.Parameter{}, nil, tensor("", 1))
			siglipText(modules, cfg.part("text_config"), "text_model")
			siglipImages(cfg.part("vision_config")).build(modules, "vision_model")
		},
		maxSeq: contrastLength,
	})
	register(family{
		types: []string{"clip_vision_model"}, table: true, class: "CLIPVisionModel", classes: []string{"CLIPVisionModel", "CLIPVisionModelWithProjection"},
		build: func(modules *builder, cfg *config, class string) {
			tower := clipTower(cfg)
			if class == "CLIPVisionModel" {
				tower.build(modules, "")
				return
			}
			_, image := tower.build(modules, "vision_model")
			modules.on(imageStream(1), func() {
				addProjection(modules, "visual_projection", tower.dim, cfg.pos(0, "projection_dim"), false, image)
			})
		},
		maxSeq: func(*config) int64 { return 0 },
	})
	register(family{
		types: []string{"clip_text_model"}, table: true, class: "CLIPTextModel", classes: []string{"CLIPTextModel", "CLIPTextModelWithProjection"},
		build: func(modules *builder, cfg *config, class string) {
			if class == "CLIPTextModel" {
				contrastText(modules, cfg, "", clipOrder)
				return
			}
			text := contrastText(modules, cfg, "text_model", clipOrder)
			addProjection(modules, "text_projection", cfg.pos(0, "hidden_size"), cfg.pos(0, "projection_dim"), false, text)
		},
	})
	register(family{
		types: []string{"siglip_vision_model"}, table: true, classes: []string{"SiglipVisionModel"},
		build:  func(modules *builder, cfg *config, _ string) { siglipImages(cfg).build(modules, "") },
		maxSeq: func(*config) int64 { return 0 },
	})
	register(family{
		types: []string{"siglip_text_model"}, table: true, classes: []string{"SiglipTextModel"},
		build: func(modules *builder, cfg *config, _ string) { siglipText(modules, cfg, "") },
	})
}

// buildClip is CLIPModel, and the class of images alone.
func buildClip(modules *builder, cfg *config, class string) {
	vision := clipPart(cfg, "vision_config")
	tower := clipTower(vision)
	if class == "CLIPForImageClassification" {
		classifyImages(modules, cfg, tower)
		return
	}
	projected := cfg.pos(0, "projection_dim")
	modules.add("logit_scale", modelgraph.Parameter{}, nil, tensor(""))
	words := clipPart(cfg, "text_config")
	text := contrastText(modules, words, "text_model", clipOrder)
	_, image := tower.build(modules, "vision_model")
	modules.on(imageStream(1), func() { addProjection(modules, "visual_projection", tower.dim, projected, false, image) })
	addProjection(modules, "text_projection", words.pos(0, "hidden_size"), projected, false, text)
}

// addProjection adds a linear layer of one position a sequence or image.
func addProjection(modules *builder, name string, in, out int64, bias bool, input string) {
	modules.add(name, modelgraph.Linear{In: in, Out: out, Pooled: true}, []string{input}, linearParams("", in, out, bias)...)
}

// clipPart is a part of a CLIPConfig. If an object of its name with _dict is there, as in the first
// configs, that and its defaults are the part (CLIPConfig.__post_init__).
func clipPart(cfg *config, name string) *config {
	whole := name + "_dict"
	if !cfg.has(whole) {
		return cfg.part(name)
	}
	cfg.shared.read[cfg.prefix+name] = true
	out := cfg.sub(whole).filled(cfg.class.Parts[name].Type)
	cfg.shared.opened[len(cfg.shared.opened)-1] = out
	return out
}

func contrastLength(cfg *config) int64 {
	return cfg.part("text_config").dim(0, "max_position_embeddings")
}

// contrastText adds the text tower of a CLIP or SigLIP, whose tokens look up rows of two tables.
func contrastText(modules *builder, cfg *config, path string, order []string) string {
	hidden, rows := cfg.pos(0, "hidden_size"), cfg.pos(0, "max_position_embeddings")
	vocab, stack := cfg.pos(0, "vocab_size"), clipStack(cfg, hidden, order)
	if order[0] == clipOrder[0] { // CLIP's text is causal, SigLIP's is not
		attention := stack.attention
		stack.attention = func(layer int64) part {
			p := attention(layer)
			if op, ok := p.op.(modelgraph.Attention); ok {
				op.Bidirectional = false
				p.op = op
			}
			return p
		}
	}
	embeddings := dot(path, "embeddings")
	modules.unit(embeddings, func() {
		modules.hidden = addTable(modules, dot(embeddings, "token_embedding"), vocab, hidden, "")
		modules.hidden = addRows(modules, dot(embeddings, "position_embedding"), modelgraph.Embedding{Vocab: rows, Dim: hidden, Index: modelgraph.PositionIndex}, modules.hidden)
		modules.add(dot(embeddings, "position_ids"), modelgraph.Opaque{}, nil).Buffers = []modelgraph.Tensor{buffer("", int64Type, 1, rows)}
	})
	stack.build(modules, dot(path, "encoder.layers"), true)
	return addLayerNorm(modules, dot(path, "final_layer_norm"), hidden, modules.hidden)
}

// siglipText is SiglipTextModel, which projects the last token.
func siglipText(modules *builder, cfg *config, path string) {
	text := contrastText(modules, cfg, path, []string{"layer_norm1", "self_attn", "layer_norm2", "mlp"})
	width := cfg.pos(0, "hidden_size")
	addProjection(modules, dot(path, "head"), width, cfg.optional(width, "projection_size"), true, text)
}

// classifyImages adds a tower and, if there are classes, their head.
func classifyImages(modules *builder, cfg *config, tower *imageTower) {
	_, image := tower.build(modules, "vision_model")
	if count := imageLabels(cfg); count > 0 {
		modules.on(imageStream(1), func() { addClassHead(modules, "classifier", tower.dim, count, true, image) })
	}
}
