package hf

import "github.com/devmap-dev/devmap/modelgraph"

func (model *vit) build(modules *builder, cfg *config, class string) {
	path := "vit"
	if baseClass(class) {
		path = ""
	}
	modules.on(model.tokens(1), func() {
		model.stack(modules, path, class == "ViTForMaskedImageModeling")
		switch class {
		case "ViTModel":
			model.pooler(modules, cfg)
		case "ViTForMaskedImageModeling":
			model.pixels(modules, cfg)
		case "ViTForImageClassification":
			if count := imageLabels(cfg); count > 0 {
				addClassHead(modules, "classifier", model.hidden, count, true, modules.hidden)
			}
		}
	})
}

// tokens is the stream of an image's patches and extra tokens.
func (model *vit) tokens(extra int64) modelgraph.Stream {
	return modelgraph.Stream{Kind: modelgraph.Fixed, Tokens: model.grid.count() + extra}
}

// imageLabels is the number of classes; 0 means no classifier.
func imageLabels(cfg *config) int64 {
	if cfg.has("num_labels") && cfg.dim(0, "num_labels") == 0 {
		return 0
	}
	return cfg.labels()
}

// stack is modeling_vit.py: ViTModel without its pooler.
func (model *vit) stack(modules *builder, path string, maskToken bool) {
	name := dot(path, "embeddings")
	modules.unit(name, func() { model.embeddings(modules, name, maskToken) })
	for i := range model.layers {
		name := indexed(dot(path, "layers"), i)
		modules.unit(name, func() { model.block(modules, name) })
	}
	modules.hidden = addLayerNorm(modules, dot(path, "layernorm"), model.hidden, modules.hidden)
}

// embeddings is modeling_vit.py: ViTEmbeddings. Its own parameters, which are added to the patches,
// have the module's name.
func (model *vit) embeddings(modules *builder, name string, maskToken bool) {
	hidden, patches := model.hidden, dot(name, "patch_embeddings.projection")
	params := []modelgraph.Tensor{tensor("cls_token", 1, 1, hidden)}
	if maskToken {
		params = append(params, tensor("mask_token", 1, 1, hidden))
	}
	params = append(params, tensor("position_embeddings", 1, model.grid.count()+1, hidden))
	modules.hidden = modules.add(name, modelgraph.Embedding{Vocab: model.grid.count() + 1, Dim: hidden}, []string{patches}, params...).Name
	modules.on(model.tokens(0), func() {
		modules.add(patches, modelgraph.Conv{In: model.channels, Out: hidden, Kernel: model.grid.height * model.grid.width, Stride: model.grid.height * model.grid.width}, nil,
			tensor("weight", hidden, model.channels, model.grid.height, model.grid.width), tensor("bias", hidden))
	})
}

// block is modeling_vit.py: ViTLayer, which registers its norms between attention and feed-forward.
func (model *vit) block(modules *builder, name string) {
	attn, mlp := dot(name, "attention"), dot(name, "mlp")
	before, after := dot(name, "layernorm_before"), dot(name, "layernorm_after")
	hidden, f, inner := model.hidden, model.mlp.Hidden, model.attention.Heads*model.attention.HeadDim
	residual := modules.hidden
	modules.add(attn, model.attention, []string{before, residual}, join(
		linearParams("q_proj", hidden, inner, model.qkvBias), linearParams("k_proj", hidden, inner, model.qkvBias),
		linearParams("v_proj", hidden, inner, model.qkvBias), linearParams("o_proj", inner, hidden, true))...)
	addLayerNorm(modules, before, hidden, residual)
	addLayerNorm(modules, after, hidden, attn)
	modules.hidden = modules.add(mlp, model.mlp, []string{after, attn},
		join(linearParams("fc1", hidden, f, true), linearParams("fc2", f, hidden, true))...).Name
}

// pooler is modeling_vit.py: ViTPooler. A size of 0, as none, means the hidden size.
func (model *vit) pooler(modules *builder, cfg *config) {
	out := model.hidden
	if cfg.has("pooler_output_size") && cfg.dim(0, "pooler_output_size") > 0 {
		out = cfg.dim(0, "pooler_output_size")
	}
	op := modelgraph.Linear{In: model.hidden, Out: out, Activation: cfg.str("tanh", "pooler_act"), Pooled: true}
	modules.empty("pooler.activation")
	modules.add("pooler.dense", op, []string{modules.hidden}, linearParams("", model.hidden, out, true)...)
}

// pixels is the decoder of modeling_vit.py, ViTForMaskedImageModeling: it makes pixels of patches.
func (model *vit) pixels(modules *builder, cfg *config) {
	stride := side(cfg, 16, "encoder_stride")
	out := sizeProduct(cfg, "encoder_stride", stride, stride, model.channels)
	modules.on(model.tokens(0), func() {
		modules.add("decoder.0", modelgraph.Conv{In: model.hidden, Out: out, Kernel: 1}, []string{modules.hidden},
			tensor("weight", out, model.hidden, 1, 1), tensor("bias", out))
	})
}
