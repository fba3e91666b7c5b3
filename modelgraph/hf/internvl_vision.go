package hf

import "github.com/devmap-dev/devmap/modelgraph"

// internViT is an InternViT tower as Transformers has it
// (modeling_internvl.py: InternVLVisionModel).
type internViT struct {
	grid                     patchGrid
	channels, dim            int64
	maskToken, positions, ln bool
	stack                    *visionStack
}

// internVLVision reads an InternVLVisionConfig.
func internVLVision(c *config) *internViT {
	c.kind("internvl_vision")
	h := c.pos(1024, "hidden_size")
	norm := internNorm(c, "layer_norm")
	op := visionAttention(c, h, 16, "num_attention_heads")
	op.LayerScale = true
	bias := c.bool(false, "attention_bias")
	params := join(linear("q_proj", h, h, bias), linear("k_proj", h, h, bias),
		linear("v_proj", h, h, bias), linear("projection_layer", h, h, true))
	if c.bool(false, "use_qk_norm") {
		op.QKNorm, op.QKNormWhole = modelgraph.RMSNorm, true
		params = append(params, tensor("q_norm.weight", h), tensor("k_norm.weight", h))
	}
	return &internViT{
		grid: patches(c, 448, 14), channels: c.pos(3, "num_channels"), dim: h,
		maskToken: c.bool(false, "use_mask_token"),
		positions: c.bool(true, "use_absolute_position_embeddings"),
		ln:        !c.bool(true, "use_mean_pooling"),
		stack: &visionStack{
			dim: h, layers: c.count(24, "num_hidden_layers"), norm: norm,
			attention: func(int64) part { return part{op: op, params: params} },
			mlp:       layerScaled(denseMLP(c, h, 4096, "gelu")),
			attnNorm:  "layernorm_before", attn: "attention", mlpNorm: "layernorm_after", mlpName: "mlp",
			order:  []string{"attention", "mlp", "layernorm_before", "layernorm_after"},
			scales: []string{"lambda_1", "lambda_2"},
		},
	}
}

// build adds the tower at path and names its hidden states. Only the blocks
// are a no-split class: each bare parameter of the embeddings is a unit.
func (v *internViT) build(b *builder, path string) []string {
	var states []string
	b.on(imageStream(v.grid.count()+1), func() { // the class token comes first
		embeddings := dot(path, "embeddings")
		bare := func(name string, rows int64) string {
			return b.add(dot(embeddings, name), modelgraph.Parameter{}, nil, tensor("", 1, rows, v.dim)).Name
		}
		extra := []string{bare("cls_token", 1)}
		if v.maskToken { // stands for hidden patches in pre-training only
			bare("mask_token", 1)
		}
		if v.positions {
			extra = append(extra, bare("position_embeddings", v.grid.count()+1))
		}
		b.hidden = v.grid.embed(b, dot(embeddings, "patch_embeddings.projection"), v.channels, v.dim)
		states = v.stack.build(b, dot(path, "encoder.layer"), true, extra...)
		if v.ln {
			states[len(states)-1] = addLayerNorm(b, dot(path, "layernorm"), v.dim, b.hidden)
		} else {
			b.empty(dot(path, "layernorm")) // nn.Identity
		}
	})
	return states
}

// internNorm reads norm_type.
func internNorm(c *config, def string) modelgraph.NormStyle {
	switch name := c.str(def, "norm_type"); name {
	case "layer_norm":
		return modelgraph.LayerNorm
	case "rms_norm":
	default:
		c.fail("norm_type", "%q is not layer_norm or rms_norm", name)
	}
	return modelgraph.RMSNorm
}

// layerScaled multiplies an MLP's result by a learned vector.
func layerScaled(p part) part {
	if op, ok := p.op.(modelgraph.MLP); ok {
		op.LayerScale = true
		p.op = op
	}
	return p
}
