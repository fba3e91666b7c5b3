package hf

import (
	"github.com/devmap-dev/devmap/modelgraph"
)

func init() {
	visionLanguage("llava", "Llava", llava)
	visionLanguage("llava_next", "LlavaNext", llavaNext)
	visionLanguage("mistral3", "Mistral3", mistral3)
}

// featureStates are the hidden states of a tower that vision_feature_layer names, one or several,
// next to each other.
func featureStates(cfg *config, states []string) []string {
	const name = "vision_feature_layer"
	if cfg.has(name) && cfg.members[name].Kind() == '[' {
		var picked []string
		for _, one := range cfg.numbers(name) {
			picked = append(picked, stateAt(cfg, name, states, one))
		}
		return picked
	}
	return []string{hiddenState(cfg, name, states)}
}

// featureCount is how many there are.
func featureCount(cfg *config) int64 {
	const name = "vision_feature_layer"
	if cfg.has(name) && cfg.members[name].Kind() == '[' {
		return int64(len(cfg.numbers(name)))
	}
	return 1
}

// tieOfText is the config's switch, or the language model's own.
func tieOfText(cfg, text *config) bool {
	return cfg.bool(false, "tie_word_embeddings") || text.flag("tie_word_embeddings")
}

// addFeatures adds a linear layer that reads several states next to each other.
func addFeatures(modules *builder, name string, in, out int64, bias bool, activation string, states []string) string {
	op := modelgraph.Linear{In: in, Out: out, Activation: activation}
	return modules.add(name, op, states, linearParams("", in, out, bias)...).Name
}

// llava reads a LlavaConfig: any tower, two linear layers, any language model (modeling_llava.py).
func llava(cfg *config) *multimodal {
	text := cfg.part("text_config")
	tower, words := imageTowerOf(cfg.part("vision_config")), textModel(text, "llama")
	bias, activation := cfg.bool(true, "multimodal_projector_bias"), cfg.str("gelu", "projector_hidden_act")
	tokens := tower.tokens
	if cfg.str("default", "vision_feature_select_strategy") == "default" {
		tokens = max(1, tokens-tower.extra)
	}
	wide := cfg.product("vision_feature_layer", featureCount(cfg), tower.dim)
	return &multimodal{
		text: words, returned: true, tied: tieOfText(cfg, text),
		features: func(modules *builder, path string) string {
			states, _ := tower.build(modules, dot(path, "vision_tower"))
			projector := dot(path, "multi_modal_projector")
			image := ""
			modules.on(imageStream(tokens), func() {
				image = addFeatures(modules, dot(projector, "linear_1"), wide, words.hidden, bias, activation, featureStates(cfg, states))
				modules.empty(dot(projector, "act"))
				image = addFeatures(modules, dot(projector, "linear_2"), words.hidden, words.hidden, bias, "", []string{image})
			})
			return image
		},
	}
}

// llavaNext reads a LlavaNextConfig: a llava with a row that ends every row of patches
// (modeling_llava_next.py). Each of its tiles is an image here.
func llavaNext(cfg *config) *multimodal {
	model := llava(cfg)
	model.tied = cfg.bool(false, "tie_word_embeddings") // its own switch alone
	features, width := model.features, model.text.hidden
	model.features = func(modules *builder, path string) string {
		modules.add(dot(path, "image_newline"), modelgraph.Parameter{}, nil, tensor("", width))
		return features(modules, path)
	}
	return model
}

// mistral3 reads a Mistral3Config: patches are normed and joined in squares before two linear
// layers (modeling_mistral3.py).
func mistral3(cfg *config) *multimodal {
	text := cfg.part("text_config")
	tower, words := imageTowerOf(cfg.part("vision_config")), textModel(text, "mistral")
	bias, activation := cfg.bool(false, "multimodal_projector_bias"), cfg.str("gelu", "projector_hidden_act")
	merge := side(cfg, 2, "spatial_merge_size")
	wide := cfg.product("spatial_merge_size", merge*merge, tower.dim)
	features := cfg.product("vision_feature_layer", featureCount(cfg), tower.dim)
	tower.multiple *= merge
	return &multimodal{
		text: words, returned: true, tied: cfg.bool(true, "tie_word_embeddings"),
		features: func(modules *builder, path string) string {
			states, _ := tower.build(modules, dot(path, "vision_tower"))
			projector := dot(path, "multi_modal_projector")
			norm := dot(projector, "norm")
			modules.on(imageStream(tower.tokens), func() {
				modules.add(norm, modelgraph.Norm{Dim: tower.dim}, featureStates(cfg, states), tensor("weight", tower.dim))
			})
			image := ""
			modules.on(imageStream(max(1, tower.tokens/(merge*merge))), func() {
				merged := addFeatures(modules, dot(projector, "patch_merger.merging_layer"), wide, tower.dim, false, "", []string{norm})
				image = addFeatures(modules, dot(projector, "linear_1"), features, words.hidden, bias, activation, []string{merged})
				modules.empty(dot(projector, "act"))
				image = addFeatures(modules, dot(projector, "linear_2"), words.hidden, words.hidden, bias, "", []string{image})
			})
			return image
		},
	}
}
