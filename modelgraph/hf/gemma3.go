package hf

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
)

// gemma3Text is a Gemma 2 with norms on q and k and no default caps. All but every
// sliding_window_pattern-th layer have windows.
func gemma3Text(cfg *config) *decoder {
	cfg = cfg.filled("gemma3_text")
	model := gemmaSandwich(cfg)
	model.qkNorms(modelgraph.GemmaRMSNorm)
	model.attn.softCap = cfg.has("attn_logit_softcapping") && cfg.float(0, "attn_logit_softcapping") != 0
	width := readWindow(cfg, 4096)
	if model.attn.bidirectional {
		width = width/2 + 1 // the window is on both sides (Gemma3TextConfig)
	}
	pattern := cfg.pos(6, "sliding_window_pattern")
	types := layerTypes(cfg, model.layers, func(i int64) bool { return (i+1)%pattern != 0 })
	rotations := gemma3Rotations(cfg, model.attn.headDim)
	model.attention = func(layer int64) part {
		at := model.attn
		at.rotation = rotations[types[layer]]
		if types[layer] == slidingAttention {
			at.window = width
		}
		return at.part()
	}
	model.softCap = cfg.has("final_logit_softcapping") && cfg.float(0, "final_logit_softcapping") != 0
	model.logitCap = cfg.softCap(0, "final_logit_softcapping")
	model.rotaryDim, model.rotary = 0, typedRotary(model.attn.headDim, types)
	return model.done()
}

// gemma3Rotations are the rotations by layer type (Gemma3TextConfig: convert_rope_params_to_dict).
// They come from rope_parameters; from rope_scaling for full attention; and from rope_theta and
// rope_local_base_freq.
func gemma3Rotations(cfg *config, headDim int64) map[string]modelgraph.Rotation {
	const name = "rope_parameters"
	typed := cfg.inside(name, cfg.object(name))
	for key, v := range typed.members {
		if key != fullAttention && key != slidingAttention && v.Kind() != '{' && v.Kind() != 'n' {
			cfg.unsaid(name, "has %q next to layer types", clipName(key))
			break
		}
	}
	full, sliding := maps.Clone(typed.object(fullAttention)), typed.object(slidingAttention)
	if scaling := cfg.object("rope_scaling"); scaling != nil {
		if _, there := cfg.members[name]; there && !cfg.isNull(name) {
			if _, there := typed.members[fullAttention]; !there || typed.isNull(fullAttention) {
				cfg.unsaid("rope_scaling", "scales layers that rope_parameters does not have")
			}
		} else {
			full = map[string]jsontext.Value{"rope_type": jsontext.Value(`"default"`)}
		}
		if full == nil {
			full = make(map[string]jsontext.Value)
		}
		maps.Copy(full, scaling)
	}
	rope := ropeConfig{outer: cfg, headDim: headDim, positions: cfg.whole(131072, "max_position_embeddings"), nested: true}
	rope.config = typed.inside(fullAttention, full)
	rotations := map[string]modelgraph.Rotation{fullAttention: rope.rotation("rope_theta", 1e6)}
	rope.config = typed.inside(slidingAttention, sliding)
	rotations[slidingAttention] = rope.rotation("rope_local_base_freq", 10_000)
	return rotations
}

// typedRotary has frequencies for each layer type of the model (Gemma3RotaryEmbedding).
func typedRotary(headDim int64, types []string) modelgraph.Layer {
	layer := modelgraph.Layer{Op: modelgraph.Rotary{HeadDim: headDim}}
	for _, kind := range []string{fullAttention, slidingAttention} {
		if !slices.Contains(types, kind) {
			continue
		}
		for _, f := range rotary(headDim).Buffers {
			f.Name = kind + "_" + f.Name
			layer.Buffers = append(layer.Buffers, f)
		}
	}
	return layer
}
