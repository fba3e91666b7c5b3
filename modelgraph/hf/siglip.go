package hf

import "github.com/devmap-dev/devmap/modelgraph"

// siglip is a SigLIP vision tower (modeling_siglip.py: SiglipVisionModel).
type siglip struct {
	grid          patchGrid
	channels, dim int64
	stack         *visionStack
	head          bool // attention pooling; what it makes is not read here
}

// siglipTower reads a SiglipVisionConfig.
func siglipTower(c *config) *siglip {
	c.kind("siglip_vision_model")
	h := c.pos(768, "hidden_size")
	mlp := denseMLP(c, h, 3072, "gelu_pytorch_tanh")
	attn := part{op: visionAttention(c, h, 12, "num_attention_heads"), params: join(
		linear("k_proj", h, h, true), linear("v_proj", h, h, true),
		linear("q_proj", h, h, true), linear("out_proj", h, h, true))}
	return &siglip{
		grid: patches(c, 224, 16), channels: c.pos(3, "num_channels"), dim: h,
		head: c.bool(true, "vision_use_head"), // true where the config is silent
		stack: &visionStack{
			dim: h, layers: c.count(12, "num_hidden_layers"), norm: modelgraph.LayerNorm,
			attention: func(int64) part { return attn }, mlp: mlp,
			attnNorm: "layer_norm1", attn: "self_attn", mlpNorm: "layer_norm2", mlpName: "mlp",
			order: []string{"layer_norm1", "self_attn", "layer_norm2", "mlp"},
		},
	}
}

// build adds the tower at path and names the layer of its last hidden state.
// Embeddings, blocks and pooling head are no-split classes.
func (s *siglip) build(b *builder, path string) string {
	var out string
	b.on(imageStream(s.grid.count()), func() {
		embeddings := dot(path, "embeddings")
		b.unit(embeddings, func() { s.embed(b, embeddings) })
		s.stack.build(b, dot(path, "encoder.layers"), true)
		out = addLayerNorm(b, dot(path, "post_layernorm"), s.dim, b.hidden)
	})
	if s.head {
		head := dot(path, "head")
		b.on(imageStream(1), func() { b.unit(head, func() { s.pool(b, head, out) }) })
	}
	return out
}

// embed adds the patches and the learned positions, which are added to them.
func (s *siglip) embed(b *builder, path string) {
	n := s.grid.count()
	patch := s.grid.embed(b, dot(path, "patch_embedding"), s.channels, s.dim)
	b.hidden = addTable(b, dot(path, "position_embedding"), n, s.dim, patch)
	b.add(dot(path, "position_ids"), modelgraph.Opaque{}, nil).Buffers = []modelgraph.Tensor{
		buffer("", modelgraph.I64, 1, n),
	}
}

// pool adds the attention of one learned query to all patches
// (SiglipMultiheadAttentionPoolingHead).
func (s *siglip) pool(b *builder, path, patches string) {
	probe := b.add(dot(path, "probe"), modelgraph.Parameter{}, nil, tensor("", 1, 1, s.dim)).Name
	op, _ := s.stack.attention(0).op.(modelgraph.Attention)
	op.Cross = true
	attn := b.add(dot(path, "attention"), op, []string{probe, patches}, join([]modelgraph.Tensor{
		tensor("in_proj_weight", 3*s.dim, s.dim), tensor("in_proj_bias", 3*s.dim),
	}, linear("out_proj", s.dim, s.dim, true))...).Name
	norm := addLayerNorm(b, dot(path, "layernorm"), s.dim, attn)
	b.add(dot(path, "mlp"), s.stack.mlp.op, []string{norm, attn}, s.stack.mlp.params...)
}
