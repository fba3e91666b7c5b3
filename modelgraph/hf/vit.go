package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types:   []string{"vit"},
		class:   "ViTForImageClassification",
		classes: []string{"ViTForImageClassification", "ViTModel", "ViTForMaskedImageModeling"},
		build:   func(b *builder, c *config, class string) { readViT(c).build(b, c, class) },
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

func readViT(c *config) *vit {
	h := c.pos(768, "hidden_size")
	return &vit{
		hidden: h, layers: c.count(12, "num_hidden_layers"),
		channels:  c.pos(3, "num_channels"),
		grid:      patches(c, 224, 16),
		attention: vitHeads(c, h),
		qkvBias:   c.bool(true, "qkv_bias"),
		mlp:       modelgraph.MLP{Dim: h, Hidden: c.pos(3072, "intermediate_size"), Activation: c.str("gelu", "hidden_act")},
	}
}

// vitHeads reads the heads of ViTAttention, whose widths need not add up to
// the hidden size.
func vitHeads(c *config, hidden int64) modelgraph.Attention {
	heads := c.pos(12, "num_attention_heads")
	if hidden < heads && !c.has("head_dim") {
		c.fail("num_attention_heads", "%d heads leave no width for each in the hidden size %d", heads, hidden)
	}
	width := c.optional(max(1, hidden/heads), "head_dim")
	c.product("head_dim", heads, width)
	return modelgraph.Attention{Dim: hidden, Heads: heads, KVHeads: heads, HeadDim: width, Bidirectional: true}
}
