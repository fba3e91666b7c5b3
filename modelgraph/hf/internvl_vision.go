package hf

import "github.com/devmap-dev/devmap/modelgraph"

// internViT is Transformers' InternViT tower (modeling_internvl.py: InternVLVisionModel).
type internViT struct {
	grid                     patchGrid
	channels, dim            int64
	maskToken, positions, ln bool
	stack                    *visionStack
}

// internVLVision reads an InternVLVisionConfig.
func internVLVision(cfg *config) *internViT {
	cfg.kind("internvl_vision")
	hidden := cfg.pos(1024, "hidden_size")
	norm := internNorm(cfg, "layer_norm")
	op := visionAttention(cfg, hidden, 16, "num_attention_heads")
	op.LayerScale = true
	bias := cfg.bool(false, "attention_bias")
	params := join(linearParams("q_proj", hidden, hidden, bias), linearParams("k_proj", hidden, hidden, bias),
		linearParams("v_proj", hidden, hidden, bias), linearParams("projection_layer", hidden, hidden, true))
	if cfg.bool(false, "use_qk_norm") {
		op.QKNorm, op.QKNormWhole = modelgraph.RMSNorm, true
		params = append(params, tensor("q_norm.weight", hidden), tensor("k_norm.weight", hidden))
	}
	return &internViT{
		grid: patches(cfg, 448, 14), channels: cfg.pos(3, "num_channels"), dim: hidden,
		maskToken: cfg.bool(false, "use_mask_token"),
		positions: cfg.bool(true, "use_absolute_position_embeddings"),
		ln:        !cfg.bool(true, "use_mean_pooling"),
		stack: &visionStack{
			dim: hidden, layers: cfg.count(24, "num_hidden_layers"), norm: norm,
			attention: func(int64) part { return part{op: op, params: params} },
			mlp:       layerScaled(denseMLP(cfg, hidden, 4096, "gelu")),
			attnNorm:  "layernorm_before", attn: "attention", mlpNorm: "layernorm_after", mlpName: "mlp",
			order:  []string{"attention", "mlp", "layernorm_before", "layernorm_after"},
			scales: []string{"lambda_1", "lambda_2"},
		},
	}
}

// build adds the tower at path and names its hidden states. Only the blocks are a no-split class:
// each bare parameter of the embeddings is a unit.
func (tower *internViT) build(modules *builder, path string) []string {
	var states []string
	modules.on(imageStream(tower.grid.count()+1), func() { // the class token comes first
		embeddings := dot(path, "embeddings")
		bare := func(name string, rows int64) string {
			return modules.add(dot(embeddings, name), modelgraph.Parameter{}, nil, tensor("", 1, rows, tower.dim)).Name
		}
		from := len(modules.layers)
		extra := []string{bare("cls_token", 1)}
		if tower.maskToken { // replaces hidden patches in pre-training only
			bare("mask_token", 1)
		}
		if tower.positions {
			extra = append(extra, bare("position_embeddings", tower.grid.count()+1))
		}
		modules.hidden = tower.grid.embed(modules, dot(embeddings, "patch_embeddings.projection"), tower.channels, tower.dim)
		modules.join(from) // InternVLVisionEmbeddings.forward
		states = tower.stack.build(modules, dot(path, "encoder.layer"), true, extra...)
		if tower.ln {
			states[len(states)-1] = addLayerNorm(modules, dot(path, "layernorm"), tower.dim, modules.hidden)
		} else {
			modules.empty(dot(path, "layernorm")) // nn.Identity
		}
	})
	return states
}

// internNorm reads norm_type.
func internNorm(cfg *config, def string) modelgraph.NormStyle {
	switch name := cfg.str(def, "norm_type"); name {
	case "layer_norm":
		return modelgraph.LayerNorm
	case "rms_norm":
	default:
		cfg.fail("norm_type", "%q is not layer_norm or rms_norm", name)
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
