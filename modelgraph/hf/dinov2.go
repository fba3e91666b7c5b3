package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types: []string{"dinov2"}, table: true, class: "Dinov2Model", classes: []string{"Dinov2Model", "Dinov2ForImageClassification"},
		build: func(modules *builder, cfg *config, class string) {
			path := "dinov2"
			if baseClass(class) {
				path = ""
			}
			image, hidden := dinov2(modules, cfg, path), cfg.pos(0, "hidden_size")
			if count := imageLabels(cfg); class == "Dinov2ForImageClassification" && count > 0 {
				// The class token and the mean of the patches.
				modules.on(modelgraph.Stream{Kind: modelgraph.Fixed, Tokens: 1}, func() { addClassHead(modules, "classifier", 2*hidden, count, true, image) })
			}
		},
		maxSeq: func(*config) int64 { return 0 },
	})
}

// dinov2 adds a Dinov2Model (modeling_dinov2.py). Before Transformers 5.18 only the blocks are a
// no-split class: each bare parameter of the embeddings is a unit.
func dinov2(modules *builder, cfg *config, path string) string {
	later := cfg.since("5.18")
	hidden, grid, channels := cfg.pos(0, "hidden_size"), patches(cfg, 224, 14), cfg.pos(0, "num_channels")
	op := visionAttention(cfg, hidden, 0, "num_attention_heads")
	op.LayerScale = true
	bias := cfg.bool(true, "qkv_bias")
	names := []string{"attention.query", "attention.key", "attention.value", "output.dense"}
	if later {
		names = []string{"q_proj", "k_proj", "v_proj", "o_proj"}
	}
	var params []modelgraph.Tensor
	for i, name := range names {
		params = append(params, linearParams(name, hidden, hidden, bias || i == len(names)-1)...)
	}
	scale := part{op: modelgraph.Parameter{}, params: []modelgraph.Tensor{tensor("lambda1", hidden)}}
	mlp := dinov2MLP(cfg, hidden)
	if feed, ok := mlp.op.(modelgraph.MLP); ok && !later { // forward's hidden_states_norm and self_attention_output
		feed.Extra = 2
		mlp.op = feed
	}
	stack := &visionStack{
		dim: hidden, layers: cfg.count(0, "num_hidden_layers"), norm: modelgraph.LayerNorm,
		attention: func(int64) part { return part{op: op, params: params} }, mlp: mlp,
		attnNorm: "norm1", attn: "attention", mlpNorm: "norm2", mlpName: "mlp",
		order:   []string{"norm1", "attention", "layer_scale1", "norm2", "mlp", "layer_scale2"},
		between: map[string]part{"layer_scale1": scale, "layer_scale2": scale},
	}
	modules.on(modelgraph.Stream{Kind: modelgraph.Fixed, Tokens: grid.count() + 1}, func() {
		bare := func(name string, shape ...int64) string {
			return modules.add(dot(path, "embeddings", name), modelgraph.Parameter{}, nil, tensor("", shape...)).Name
		}
		var extra []string
		embeddings := func() {
			extra = append(extra, bare("cls_token", 1, 1, hidden))
			if cfg.bool(true, "use_mask_token") { // replaces hidden patches in pre-training only
				bare("mask_token", 1, hidden)
			}
			extra = append(extra, bare("position_embeddings", 1, grid.count()+1, hidden))
			convolution := modelgraph.Conv{In: channels, Out: hidden, Kernel: grid.height * grid.width, Stride: grid.height * grid.width}
			modules.on(modelgraph.Stream{Kind: modelgraph.Fixed, Tokens: grid.count()}, func() {
				modules.hidden = modules.add(dot(path, "embeddings.patch_embeddings.projection"), convolution, nil,
					tensor("weight", hidden, channels, grid.height, grid.width), tensor("bias", hidden)).Name
			})
		}
		if later {
			modules.unit(dot(path, "embeddings"), embeddings)
		} else {
			embeddings()
		}
		stack.build(modules, dot(path, "encoder.layer"), true, extra...)
		modules.hidden = addLayerNorm(modules, dot(path, "layernorm"), hidden, modules.hidden)
	})
	return modules.hidden
}

// dinov2MLP is Dinov2MLP, or Dinov2SwiGLUFFN: two thirds as wide, rounded up to a multiple of 8.
func dinov2MLP(cfg *config, hidden int64) part {
	inner := cfg.product("mlp_ratio", hidden, cfg.pos(0, "mlp_ratio"))
	if cfg.flag("use_swiglu_ffn") {
		inner = (inner*2/3 + 7) / 8 * 8
		if cfg.since("5.18") {
			return layerScaled(feedForward{dim: hidden, hidden: inner, activation: "silu", bias: true}.part())
		}
		return part{
			op:     modelgraph.MLP{Dim: hidden, Hidden: inner, Gated: true, Fused: true, Activation: "silu", LayerScale: true},
			params: join(linearParams("weights_in", hidden, 2*inner, true), linearParams("weights_out", inner, hidden, true)),
		}
	}
	return layerScaled(feedForward{dim: hidden, hidden: inner, activation: cfg.str("", "hidden_act"), bias: true, up: "fc1", down: "fc2"}.part())
}
