package hf

import "github.com/devmap-dev/devmap/modelgraph"

// siglip is a SigLIP vision tower (modeling_siglip.py: SiglipVisionModel).
type siglip struct {
	grid          patchGrid
	channels, dim int64
	stack         *visionStack
	head          bool // attention pooling; its result is not read here
	states        []string
}

// siglipTower reads a SiglipVisionConfig.
func siglipTower(cfg *config) *siglip {
	cfg.kind("siglip_vision_model")
	hidden := cfg.pos(768, "hidden_size")
	mlp := denseMLP(cfg, hidden, 3072, "gelu_pytorch_tanh")
	attn := part{op: visionAttention(cfg, hidden, 12, "num_attention_heads"), params: join(
		linearParams("k_proj", hidden, hidden, true), linearParams("v_proj", hidden, hidden, true),
		linearParams("q_proj", hidden, hidden, true), linearParams("out_proj", hidden, hidden, true))}
	return &siglip{
		grid: patches(cfg, 224, 16), channels: cfg.pos(3, "num_channels"), dim: hidden,
		head: cfg.bool(true, "vision_use_head"), // true if the config is silent
		stack: &visionStack{
			dim: hidden, layers: cfg.count(12, "num_hidden_layers"), norm: modelgraph.LayerNorm,
			attention: func(int64) part { return attn }, mlp: mlp,
			attnNorm: "layer_norm1", attn: "self_attn", mlpNorm: "layer_norm2", mlpName: "mlp",
			order: []string{"layer_norm1", "self_attn", "layer_norm2", "mlp"},
		},
	}
}

// build adds the tower at path and names the layer of its last hidden state. Embeddings, blocks and
// pooling head are no-split classes.
func (tower *siglip) build(modules *builder, path string) string {
	var out string
	modules.on(imageStream(tower.grid.count()), func() {
		embeddings := dot(path, "embeddings")
		modules.unit(embeddings, func() { tower.embed(modules, embeddings) })
		tower.states = tower.stack.build(modules, dot(path, "encoder.layers"), true)
		out = addLayerNorm(modules, dot(path, "post_layernorm"), tower.dim, modules.hidden)
	})
	if tower.head {
		head := dot(path, "head")
		modules.on(imageStream(1), func() { modules.unit(head, func() { tower.pool(modules, head, out) }) })
	}
	return out
}

// embed adds the patches and the learned positions, which are added to them.
func (tower *siglip) embed(modules *builder, path string) {
	count := tower.grid.count()
	patch := tower.grid.embed(modules, dot(path, "patch_embedding"), tower.channels, tower.dim)
	modules.hidden = addTable(modules, dot(path, "position_embedding"), count, tower.dim, patch)
	modules.add(dot(path, "position_ids"), modelgraph.Opaque{}, nil).Buffers = []modelgraph.Tensor{
		buffer("", int64Type, 1, count),
	}
}

// pool adds a learned query's attention to all patches (SiglipMultiheadAttentionPoolingHead).
func (tower *siglip) pool(modules *builder, path, patches string) {
	probe := modules.add(dot(path, "probe"), modelgraph.Parameter{}, nil, tensor("", 1, 1, tower.dim)).Name
	op, _ := tower.stack.attention(0).op.(modelgraph.Attention)
	op.Cross = true
	attn := modules.add(dot(path, "attention"), op, []string{probe, patches}, join([]modelgraph.Tensor{
		tensor("in_proj_weight", 3*tower.dim, tower.dim), tensor("in_proj_bias", 3*tower.dim),
	}, linearParams("out_proj", tower.dim, tower.dim, true))...).Name
	norm := addLayerNorm(modules, dot(path, "layernorm"), tower.dim, attn)
	modules.add(dot(path, "mlp"), tower.stack.mlp.op, []string{norm, attn}, tower.stack.mlp.params...)
}
