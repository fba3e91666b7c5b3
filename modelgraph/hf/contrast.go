package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types: []string{"clip"}, table: true, class: "CLIPModel", classes: []string{"CLIPModel", "CLIPForImageClassification"},
		build: func(modules *builder, cfg *config, class string) {
			vision := cfg.part("vision_config")
			tower := clipTower(vision)
			if class == "CLIPForImageClassification" {
				classifyImages(modules, cfg, tower)
				return
			}
			projected := cfg.pos(0, "projection_dim")
			modules.add("logit_scale", modelgraph.Parameter{}, nil, tensor(""))
			text := contrastText(modules, cfg.part("text_config"), clipOrder)
			_, image := tower.build(modules, "vision_model")
			modules.on(imageStream(1), func() {
				modules.add("visual_projection", modelgraph.Linear{In: tower.dim, Out: projected, Pooled: true}, []string{image}, linearParams("", tower.dim, projected, false)...)
			})
			width := cfg.part("text_config").pos(0, "hidden_size")
			modules.add("text_projection", modelgraph.Linear{In: width, Out: projected, Pooled: true}, []string{text}, linearParams("", width, projected, false)...)
		},
		maxSeq: contrastLength,
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
			words := cfg.part("text_config")
			text := contrastText(modules, words, []string{"layer_norm1", "self_attn", "layer_norm2", "mlp"})
			width := words.pos(0, "hidden_size")
			out := words.optional(width, "projection_size")
			modules.add("text_model.head", modelgraph.Linear{In: width, Out: out, Pooled: true}, []string{text}, linearParams("", width, out, true)...)
			siglipImages(cfg.part("vision_config")).build(modules, "vision_model")
		},
		maxSeq: contrastLength,
	})
	for kind, read := range map[string]func(*config) *imageTower{"clip_vision_model": clipTower, "siglip_vision_model": siglipImages} {
		register(family{
			types: []string{kind}, table: true, classes: tableClasses(kind, []string{"VisionModel"}),
			build:  func(modules *builder, cfg *config, _ string) { read(cfg).build(modules, "") },
			maxSeq: func(*config) int64 { return 0 },
		})
	}
}

func contrastLength(cfg *config) int64 {
	return cfg.part("text_config").dim(0, "max_position_embeddings")
}

// contrastText adds the text tower of a CLIP or SigLIP, whose tokens look up
// rows of two tables.
func contrastText(modules *builder, cfg *config, order []string) string {
	const path = "text_model"
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

// classifyImages adds a tower and, where there are classes, their head.
func classifyImages(modules *builder, cfg *config, tower *imageTower) {
	_, image := tower.build(modules, "vision_model")
	if count := imageLabels(cfg); count > 0 {
		modules.on(imageStream(1), func() { addClassHead(modules, "classifier", tower.dim, count, true, image) })
	}
}
