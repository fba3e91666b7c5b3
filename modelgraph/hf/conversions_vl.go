package hf

import "strings"

// llava are the rules of the models made like LLaVA, published when the
// language model was a causal one inside ("llava", "LlavaModel" and, for a
// SigLIP tower, "CLIPVisionModel" of conversion_mapping.py).
func (load *loading) llava(cfg *config, class string, siglip bool) {
	inner := atStart("language_model.model", "language_model")
	if baseClass(class) {
		load.renames = append(load.renames, inner)
	} else {
		load.renames = append(load.renames,
			atStart("language_model.lm_head", "lm_head"),
			atStart("language_model", "model.language_model"),
			atStart("vision_tower", "model.vision_tower"),
			atStart("multi_modal_projector", "model.multi_modal_projector"),
			scoped(load.prefix, "", inner))
	}
	if siglip {
		load.renames = append(load.renames, scoped(load.prefix, "vision_tower", atStart("vision_model.", "")))
	}
	load.text(cfg.sub("text_config").str("", "model_type"), "language_model")
}

// qwen2VLNames are the rules of Qwen2VLForConditionalGeneration and
// Qwen2VLModel: the towers moved under "model" and "model.language_model".
func qwen2VLNames(load *loading, _ *config, class string) {
	const text = "model.language_model"
	add := func(name string) string {
		rest, ok := strings.CutPrefix(name, "model.")
		if !ok || rest == "" || strings.HasPrefix(rest, "language_model.") {
			return name
		}
		return text + "." + rest
	}
	if baseClass(class) {
		load.renames = append(load.renames, add)
		return
	}
	load.renames = append(load.renames,
		atStart("visual", "model.visual"),
		func(name string) string {
			rest, ok := strings.CutPrefix(name, "model")
			if !ok || strings.HasPrefix(rest, ".language_model") || strings.HasPrefix(rest, ".visual") {
				return name
			}
			return text + rest
		},
		scoped(load.prefix, "", add))
}

// vitNames are the rules of ViTModel, whose layers lost a level in 5.x.
func vitNames(load *loading, _ *config, _ string) {
	load.renames = append(load.renames, scoped(load.prefix, "",
		within("encoder.layer.", "layers."),
		within("attention.query", "q_proj"),
		within("attention.key", "k_proj"),
		within("attention.value", "v_proj"),
		within("attention.output.dense", "attention.o_proj"),
		within("intermediate.dense", "mlp.fc1"),
		within("output.dense", "mlp.fc2")))
}

// text are the rules of a language model at a path ("" at the root): experts
// were single modules ("mixtral" and "qwen2_moe").
func (load *loading) text(modelType, path string) {
	var scopes []string
	if path != "" {
		scopes = []string{path + "."}
		if load.prefix != "" {
			scopes = append(scopes, load.prefix+"."+path+".")
		}
	}
	switch modelType {
	case "mixtral":
		blocks := within(".block_sparse_moe.", ".mlp.")
		if path != "" {
			blocks = scoped(load.prefix, path, blocks)
		}
		load.renames = append(load.renames, blocks)
		load.stacks = append(load.stacks,
			stack{".experts.", []string{".w1.weight", ".w3.weight"}, ".experts.gate_up_proj", scopes},
			stack{".experts.", []string{".w2.weight"}, ".experts.down_proj", scopes})
	case "qwen3_moe", "deepseek_v3":
		load.stacks = append(load.stacks,
			stack{"mlp.experts.", []string{".gate_proj.weight", ".up_proj.weight"}, "mlp.experts.gate_up_proj", scopes},
			stack{"mlp.experts.", []string{".down_proj.weight"}, "mlp.experts.down_proj", scopes})
	}
}
