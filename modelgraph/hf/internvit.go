package hf

import (
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// remoteInternViT is an InternViT tower of OpenGVLab's checkpoints (modeling_intern_vit.py:
// InternVisionModel). The 6B one has RMSNorms, norms on q and k, and no bias in qkv; the 300M one
// LayerNorms and the bias.
type remoteInternViT struct {
	table patchGrid // that the positions were made for
	image patchGrid // that the tower gets
	dim   int64
	stack *visionStack
}

// readInternViT reads an InternVisionConfig; its defaults are the 6B model's. force, unless 0, is
// the side of the images: the model stretches the table of positions to it.
func readInternViT(cfg *config, force int64) *remoteInternViT {
	cfg.kind("intern_vit_6b", "intern_vit_300m")
	if cfg.has("use_moe") && cfg.flag("use_moe") {
		cfg.fail("use_moe", "experts of an InternViT are not known here")
	}
	for name := range cfg.members { // InternVL 2.5's configs size experts that use_moe turns off
		if strings.HasPrefix(name, "moe_") || strings.HasSuffix(name, "_experts") {
			cfg.shared.read[cfg.prefix+name] = cfg.has("use_moe")
		}
	}
	hidden := cfg.pos(3200, "hidden_size")
	op := visionAttention(cfg, hidden, 25, "num_attention_heads")
	op.Fused, op.LayerScale = true, true
	params := linearParams("qkv", hidden, 3*hidden, cfg.bool(false, "qkv_bias"))
	if cfg.bool(true, "qk_normalization") {
		op.QKNorm, op.QKNormWhole = modelgraph.RMSNorm, true
		params = append(params, tensor("q_norm.weight", hidden), tensor("k_norm.weight", hidden))
	}
	params = join(params, linearParams("proj", hidden, hidden, true))
	tower := &remoteInternViT{
		table: patches(cfg, 224, 14), dim: hidden,
		stack: &visionStack{
			dim: hidden, layers: cfg.count(48, "num_hidden_layers"), norm: internNorm(cfg, "rms_norm"),
			attention: func(int64) part { return part{op: op, params: params} },
			mlp:       layerScaled(denseMLP(cfg, hidden, 12800, "gelu")),
			attnNorm:  "norm1", attn: "attn", mlpNorm: "norm2", mlpName: "mlp",
			order:  []string{"attn", "mlp", "norm1", "norm2"},
			scales: []string{"ls1", "ls2"},
		},
	}
	tower.image = tower.table
	if force > 0 {
		tower.image.rows, tower.image.columns = force/tower.table.height, force/tower.table.width
	}
	return tower
}

// build adds the tower at path, whole for the chat model, and names its hidden states.
func (tower *remoteInternViT) build(modules *builder, path string) []string {
	var states []string
	modules.on(imageStream(tower.image.count()+1), func() { // the class token comes first
		modules.unit(path, func() {
			embeddings := dot(path, "embeddings")
			class := modules.add(dot(embeddings, "class_embedding"), modelgraph.Parameter{}, nil, tensor("", 1, 1, tower.dim)).Name
			positions := modules.add(dot(embeddings, "position_embedding"), modelgraph.Parameter{}, nil,
				tensor("", 1, tower.table.count()+1, tower.dim)).Name
			modules.hidden = tower.image.embed(modules, dot(embeddings, "patch_embedding"), 3, tower.dim)
			states = tower.stack.build(modules, dot(path, "encoder.layers"), false, class, positions)
		})
	})
	return states
}
