package hf

import "github.com/devmap-dev/devmap/modelgraph"

func (v *vit) build(b *builder, c *config, class string) {
	path := "vit"
	if baseClass(class) {
		path = ""
	}
	b.on(v.tokens(1), func() {
		v.stack(b, path, class == "ViTForMaskedImageModeling")
		switch class {
		case "ViTModel":
			v.pooler(b, c)
		case "ViTForMaskedImageModeling":
			v.pixels(b, c)
		case "ViTForImageClassification":
			if n := imageLabels(c); n > 0 {
				addClassHead(b, "classifier", v.hidden, n, true, b.hidden)
			}
		}
	})
}

// tokens is the stream of an image's patches and extra tokens.
func (v *vit) tokens(extra int64) modelgraph.Stream {
	return modelgraph.Stream{Kind: modelgraph.Fixed, Tokens: v.grid.count() + extra}
}

// imageLabels is the number of classes, where 0 means no classifier.
func imageLabels(c *config) int64 {
	if c.has("num_labels") && c.dim(0, "num_labels") == 0 {
		return 0
	}
	return c.labels()
}

// stack is modeling_vit.py: ViTModel without its pooler.
func (v *vit) stack(b *builder, path string, maskToken bool) {
	name := dot(path, "embeddings")
	b.unit(name, func() { v.embeddings(b, name, maskToken) })
	for i := range v.layers {
		name := indexed(dot(path, "layers"), i)
		b.unit(name, func() { v.block(b, name) })
	}
	b.hidden = addLayerNorm(b, dot(path, "layernorm"), v.hidden, b.hidden)
}

// embeddings is modeling_vit.py: ViTEmbeddings. Its own parameters, which
// are added to the patches, go by the module's name.
func (v *vit) embeddings(b *builder, name string, maskToken bool) {
	h, patches := v.hidden, dot(name, "patch_embeddings.projection")
	params := []modelgraph.Tensor{tensor("cls_token", 1, 1, h)}
	if maskToken {
		params = append(params, tensor("mask_token", 1, 1, h))
	}
	params = append(params, tensor("position_embeddings", 1, v.grid.count()+1, h))
	b.hidden = b.add(name, modelgraph.Embedding{Vocab: v.grid.count() + 1, Dim: h}, []string{patches}, params...).Name
	b.on(v.tokens(0), func() {
		b.add(patches, modelgraph.Conv{In: v.channels, Out: h, Kernel: v.grid.height * v.grid.width}, nil,
			tensor("weight", h, v.channels, v.grid.height, v.grid.width), tensor("bias", h))
	})
}

// block is modeling_vit.py: ViTLayer, which registers its norms between
// attention and feed-forward.
func (v *vit) block(b *builder, name string) {
	attn, mlp := dot(name, "attention"), dot(name, "mlp")
	before, after := dot(name, "layernorm_before"), dot(name, "layernorm_after")
	h, f, inner := v.hidden, v.mlp.Hidden, v.attention.Heads*v.attention.HeadDim
	residual := b.hidden
	b.add(attn, v.attention, []string{before, residual}, join(
		linear("q_proj", h, inner, v.qkvBias), linear("k_proj", h, inner, v.qkvBias),
		linear("v_proj", h, inner, v.qkvBias), linear("o_proj", inner, h, true))...)
	addLayerNorm(b, before, h, residual)
	addLayerNorm(b, after, h, attn)
	b.hidden = b.add(mlp, v.mlp, []string{after, attn},
		join(linear("fc1", h, f, true), linear("fc2", f, h, true))...).Name
}

// pooler is modeling_vit.py: ViTPooler. A size of 0 stands for the hidden
// size, as none does.
func (v *vit) pooler(b *builder, c *config) {
	out := v.hidden
	if c.has("pooler_output_size") && c.dim(0, "pooler_output_size") > 0 {
		out = c.dim(0, "pooler_output_size")
	}
	op := modelgraph.Linear{In: v.hidden, Out: out, Activation: c.str("tanh", "pooler_act"), Pooled: true}
	b.empty("pooler.activation")
	b.add("pooler.dense", op, []string{b.hidden}, linear("", v.hidden, out, true)...)
}

// pixels is the decoder of modeling_vit.py: ViTForMaskedImageModeling, which
// turns every patch back into pixels.
func (v *vit) pixels(b *builder, c *config) {
	stride := side(c, 16, "encoder_stride")
	out := sizeProduct(c, "encoder_stride", stride, stride, v.channels)
	b.on(v.tokens(0), func() {
		b.add("decoder.0", modelgraph.Conv{In: v.hidden, Out: out, Kernel: 1}, []string{b.hidden},
			tensor("weight", out, v.hidden, 1, 1), tensor("bias", out))
	})
}
