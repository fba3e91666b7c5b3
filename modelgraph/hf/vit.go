package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"vit"},
		class:   "ViTForImageClassification",
		classes: []string{"ViTForImageClassification", "ViTModel", "ViTForMaskedImageModeling"},
		build:   func(modules *builder, cfg *config, class string) { readViT(cfg).build(modules, cfg, class) },
		// The image fixes the number of tokens; no text comes in.
		maxSeq: func(*config) int64 { return 0 },
	})
}

// vit is configuration_vit.py: ViTConfig.
type vit struct {
	hidden, layers int64
	channels       int64
	grid           patchGrid

	attention modelgraph.Attention
	qkvBias   bool
	mlp       modelgraph.MLP
}

func readViT(cfg *config) *vit {
	hidden := cfg.pos(768, "hidden_size")
	return &vit{
		hidden: hidden, layers: cfg.count(12, "num_hidden_layers"),
		channels:  cfg.pos(3, "num_channels"),
		grid:      patches(cfg, 224, 16),
		attention: vitHeads(cfg, hidden),
		qkvBias:   cfg.bool(true, "qkv_bias"),
		mlp:       modelgraph.MLP{Dim: hidden, Hidden: cfg.pos(3072, "intermediate_size"), Activation: cfg.str("gelu", "hidden_act")},
	}
}

// vitHeads reads the heads of ViTAttention, whose widths may not add up to the hidden size.
func vitHeads(cfg *config, hidden int64) modelgraph.Attention {
	heads := cfg.pos(12, "num_attention_heads")
	if hidden < heads && !cfg.has("head_dim") {
		cfg.fail("num_attention_heads", "%d heads leave no width for each in the hidden size %d", heads, hidden)
	}
	width := cfg.optional(max(1, hidden/heads), "head_dim")
	cfg.product("head_dim", heads, width)
	return modelgraph.Attention{Dim: hidden, Heads: heads, KVHeads: heads, HeadDim: width, Bidirectional: true}
}
