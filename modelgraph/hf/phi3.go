package hf

import "github.com/devmap-dev/devmap/modelgraph"

// phi3: q, k, v and gate and up are one matrix each, a part of a head turns.
func phi3(cfg *config) *decoder {
	cfg = cfg.filled("phi3")
	model := runningParts(cfg)
	model.attn.fused, model.mlp.fused = true, true
	model.attn.window = readWindow(cfg, 0)
	model.rotaryDim = partialRotary(cfg, model.attn.headDim)
	model.attn.rotation = phi3Rotation(cfg, model.attn.headDim, model.rotaryDim)
	return model.done()
}

// phi3Rotation is the rotation of a Phi3Config, which allows partial rotation without scaling. Its
// only scaling has older names "su" and "yarn".
func phi3Rotation(cfg *config, headDim, width int64) modelgraph.Rotation {
	rotation := cfg.rotation(headDim, 4096)
	switch rotation.Type {
	case "":
		if width != headDim {
			rotation.Width = width
		}
	case "su", "yarn":
		rotation = modelgraph.Rotation{Type: "longrope", Base: rotation.Base}
	case "longrope":
	default:
		cfg.unsaid("rope type", "%q is not one of Phi-3's (longrope)", rotation.Type)
	}
	return rotation
}

// partialRotary is the rotated part of a head: partial_rotary_factor. A factor inside rope_scaling
// or rope_parameters takes precedence (Phi3Config.convert_rope_params_to_dict).
func partialRotary(cfg *config, headDim int64) int64 {
	rope := cfg.sub(cfg.pick([]string{"rope_scaling", "rope_parameters"}))
	float := rope.float(cfg.float(1, "partial_rotary_factor"), "partial_rotary_factor")
	if !(float > 0 && float <= 1) {
		cfg.fail("partial_rotary_factor", "%v is not a share (more than 0, 1 at most)", float)
		return headDim
	}
	return int64(float64(headDim) * float)
}
