package hf

import "github.com/devmap-dev/devmap/modelgraph"

// remoteInternViT is an InternViT tower as OpenGVLab's checkpoints have it
// (modeling_intern_vit.py: InternVisionModel): the 6B one with RMSNorms, norms
// on q and k and no bias in qkv, the 300M one with LayerNorms and the bias.
type remoteInternViT struct {
	table patchGrid // that the positions were made for
	image patchGrid // that the tower gets
	dim   int64
	stack *visionStack
}

// readInternViT reads an InternVisionConfig; its defaults are the 6B model's.
// force, unless 0, is the side of the images: the model stretches the table
// of positions to it.
func readInternViT(c *config, force int64) *remoteInternViT {
	c.kind("intern_vit_6b", "intern_vit_300m")
	h := c.pos(3200, "hidden_size")
	op := visionAttention(c, h, 25, "num_attention_heads")
	op.Fused, op.LayerScale = true, true
	params := linear("qkv", h, 3*h, c.bool(false, "qkv_bias"))
	if c.bool(true, "qk_normalization") {
		op.QKNorm, op.QKNormWhole = modelgraph.RMSNorm, true
		params = append(params, tensor("q_norm.weight", h), tensor("k_norm.weight", h))
	}
	params = join(params, linear("proj", h, h, true))
	v := &remoteInternViT{
		table: patches(c, 224, 14), dim: h,
		stack: &visionStack{
			dim: h, layers: c.count(48, "num_hidden_layers"), norm: internNorm(c, "rms_norm"),
			attention: func(int64) part { return part{op: op, params: params} },
			mlp:       layerScaled(denseMLP(c, h, 12800, "gelu")),
			attnNorm:  "norm1", attn: "attn", mlpNorm: "norm2", mlpName: "mlp",
			order:  []string{"attn", "mlp", "norm1", "norm2"},
			scales: []string{"ls1", "ls2"},
		},
	}
	v.image = v.table
	if force > 0 {
		v.image.rows, v.image.columns = force/v.table.height, force/v.table.width
	}
	return v
}

// build adds the tower at path and names its hidden states. The chat model
// calls the whole tower a no-split class.
func (v *remoteInternViT) build(b *builder, path string) []string {
	var states []string
	b.on(imageStream(v.image.count()+1), func() { // the class token comes first
		b.unit(path, func() {
			embeddings := dot(path, "embeddings")
			class := b.add(dot(embeddings, "class_embedding"), modelgraph.Parameter{}, nil, tensor("", 1, 1, v.dim)).Name
			positions := b.add(dot(embeddings, "position_embedding"), modelgraph.Parameter{}, nil,
				tensor("", 1, v.table.count()+1, v.dim)).Name
			b.hidden = v.image.embed(b, dot(embeddings, "patch_embedding"), 3, v.dim)
			states = v.stack.build(b, dot(path, "encoder.layers"), false, class, positions)
		})
	})
	return states
}
