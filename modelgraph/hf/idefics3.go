package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	visionLanguage("idefics3", "Idefics3", idefics3)
	visionLanguage("smolvlm", "SmolVLM", idefics3)
}

// idefics3 reads an Idefics3Config or a SmolVLMConfig: a SigLIP whose patches are shuffled into
// fewer, wider tokens, one matrix, any language model (modeling_idefics3.py).
func idefics3(cfg *config) *multimodal {
	words, vision := cfg.part("text_config"), cfg.part("vision_config")
	text := textModel(words, "llama")
	tower := idefics3Tower(vision)
	factor := side(cfg, 2, "scale_factor")
	wide := cfg.product("scale_factor", factor*factor, tower.dim)
	return &multimodal{
		text: text, returned: true, tied: cfg.bool(false, "tie_word_embeddings"), module: "text_model",
		features: func(modules *builder, path string) string {
			_, image := tower.build(modules, dot(path, "vision_model"))
			modules.on(imageStream(max(1, tower.tokens/(factor*factor))), func() {
				image = addFeatures(modules, dot(path, "connector.modality_projection.proj"), wide, text.hidden, false, "", []string{image})
			})
			return image
		},
	}
}

// idefics3Tower is Idefics3VisionTransformer, of whose classes only attention is not split.
func idefics3Tower(cfg *config) *imageTower {
	hidden, grid, channels := cfg.pos(0, "hidden_size"), patches(cfg, 224, 32), cfg.pos(0, "num_channels")
	stack := clipStack(cfg, hidden, clipOrder)
	mlp, _ := stack.mlp.op.(modelgraph.MLP)
	tower := &imageTower{dim: hidden, tokens: grid.count()}
	tower.build = func(modules *builder, path string) (states []string, last string) {
		modules.on(imageStream(tower.tokens), func() {
			patch := grid.embed(modules, dot(path, "embeddings.patch_embedding"), channels, hidden)
			modules.hidden = addTable(modules, dot(path, "embeddings.position_embedding"), grid.count(), hidden, patch)
			for i := range stack.layers {
				name, residual := indexed(dot(path, "encoder.layers"), i), modules.hidden
				states = append(states, residual)
				attn, norm2 := dot(name, "self_attn"), dot(name, "layer_norm2")
				p := stack.attention(i)
				modules.add(attn, p.op, []string{dot(name, "layer_norm1"), residual}, join(p.params)...)
				addLayerNorm(modules, dot(name, "layer_norm1"), hidden, residual)
				inner := addLinear(modules, dot(name, "mlp.fc1"), hidden, mlp.Hidden, mlp.Activation, norm2)
				out := modelgraph.Linear{In: mlp.Hidden, Out: hidden}
				modules.empty(dot(name, "mlp.activation_fn"))
				modules.hidden = modules.add(dot(name, "mlp.fc2"), out, []string{inner, attn}, linearParams("", mlp.Hidden, hidden, true)...).Name
				addLayerNorm(modules, norm2, hidden, attn)
			}
			last = addLayerNorm(modules, dot(path, "post_layernorm"), hidden, modules.hidden)
			states = append(states, last)
		})
		return states, last
	}
	return tower
}
