package hf

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// ropeConfig is the RoPE parameters of one kind of layer, with the config around them.
type ropeConfig struct {
	*config         // the parameters
	outer   *config // the text model's config
	headDim int64
	// positions is max_position_embeddings.
	positions int64
	// nested: the parameters are under their layer type (Gemma 3).
	nested bool
}

// rotation reads how q and k rotate, with one set of parameters for all layers. It is rope_scaling
// if not empty, else rope_parameters, and rope_theta next to them (modeling_rope_utils.py:
// convert_rope_params_to_dict). positions is the family's default of max_position_embeddings.
func (cfg *config) rotation(headDim, positions int64) modelgraph.Rotation {
	name := "rope_scaling"
	members := cfg.object(name)
	if members == nil {
		name = "rope_parameters"
		members = cfg.object(name)
	}
	for _, layers := range []string{fullAttention, slidingAttention} {
		if _, there := members[layers]; there {
			cfg.unsaid(name, "has parameters of %s alone, which this family does not know", layers)
		}
	}
	rope := ropeConfig{config: cfg.inside(name, members), outer: cfg, headDim: headDim, positions: cfg.whole(positions, "max_position_embeddings")}
	return rope.rotation("rope_theta", 10_000)
}

// checkRotation refuses values that no forward takes, in this config and its inner ones: rope_scaling and rope_parameters
// that are not objects (RotaryEmbeddingConfigMixin), their unknown types, and windows without a number (masking_utils.py).
// Gemma 3 does not read the older name of a type (configuration_gemma3.py, convert_rope_params_to_dict).
func (cfg *config) checkRotation(names ...string) error {
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		if v, there := cfg.members[name]; there && !empty(v) && v.Kind() != '{' {
			cfg.fail(name, "%s is not an object, as Transformers %s needs: correct or remove it", short(v), cfg.shared.in.Name)
		}
		rope := cfg.within(name)
		rope.checkRopeType(names)
		for _, kind := range slices.Sorted(maps.Keys(rope.members)) { // parameters of layer types
			rope.within(kind).checkRopeType(names)
		}
	}
	if v := cfg.members["sliding_window"]; len(v) > 0 && strings.ContainsRune(`"[{`, rune(v.Kind())) {
		cfg.fail("sliding_window", "%s is not a number of tokens, as Transformers %s needs: correct or remove it", short(v), cfg.shared.in.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.members)) {
		if strings.HasSuffix(name, "_config") && cfg.members[name].Kind() == '{' {
			_ = cfg.within(name).checkRotation(names...)
		}
	}
	return cfg.fault()
}

// ropeTypes are the names of ROPE_INIT_FUNCTIONS (modeling_rope_utils.py), and of configs of some classes.
var ropeTypes = tables.WordSet("default linear dynamic yarn longrope llama3 proportional axial mrope xdrope su ntk")

func (cfg *config) checkRopeType(names []string) {
	for _, name := range names {
		if kind := cfg.lenient(name); kind != "" {
			if !ropeTypes[kind] {
				cfg.fail(name, "%q is no type of RoPE of Transformers %s, which fails with it (ROPE_INIT_FUNCTIONS): correct it", clipName(kind), cfg.shared.in.Name)
			}
			return
		}
	}
}

// within is the named object, without members if there is none.
func (cfg *config) within(name string) *config {
	var members map[string]jsontext.Value
	if v := cfg.members[name]; v.Kind() == '{' && json.Unmarshal(v, &members) != nil {
		members = nil
	}
	return cfg.inside(name, members)
}

// inside is a config of the given members, which are the named object's.
func (cfg *config) inside(name string, members map[string]jsontext.Value) *config {
	return newConfig(cfg.file, cfg.prefix+name+".", members, cfg.shared)
}

// rotation reads the parameters; theta is the outer field with the base, if they have none.
func (rope *ropeConfig) rotation(theta string, base float64) modelgraph.Rotation {
	rotation := modelgraph.Rotation{Type: rope.kind(), Base: rope.theta(theta, base)}
	switch rotation.Type {
	case "":
		return rotation
	case "linear", "dynamic", "llama3":
		rotation.Factor = rope.needed("factor")
	case "yarn":
		rotation.Factor = rope.stretch()
	default:
		return rotation // kept by its name alone
	}
	rotation.Width = rope.width()
	switch rotation.Type {
	case "dynamic":
		rotation.Trained = rope.positions
	case "llama3":
		rotation.Trained = rope.trained()
		rotation.Slow, rotation.Fast = rope.needed("low_freq_factor"), rope.needed("high_freq_factor")
	case "yarn":
		rotation.Trained = rope.trained()
		rotation.Slow, rotation.Fast = rope.numberOrNull(0, "beta_slow"), rope.numberOrNull(0, "beta_fast")
		rotation.AttentionFactor = rope.attentionFactor(rotation.Factor)
		v, there := rope.members["truncate"]
		rotation.Untruncated = there && empty(v) && !rope.nested // nested, the framework looks for it one level up
	}
	return rotation
}

// kind is rope_type, or type as older configs have it; empty for the default.
func (rope *ropeConfig) kind() string {
	for _, name := range []string{"rope_type", "type"} {
		v, there := rope.members[name]
		if !there {
			continue
		}
		var kind string
		if v.Kind() != '"' || json.Unmarshal(v, &kind) != nil {
			rope.unsaid(name, "%s is not a type of RoPE", short(v))
		}
		if kind == "default" {
			return ""
		}
		return strings.ToValidUTF8(clipName(kind), "")
	}
	return ""
}

// theta is the base of the parameters, else of the outer config, else the default.
func (rope *ropeConfig) theta(outer string, base float64) float64 {
	holder, name := rope.outer, outer
	if _, there := rope.members["rope_theta"]; there {
		holder, name = rope.config, "rope_theta"
	}
	theta := holder.number(base, name)
	if theta == 0 {
		holder.unsaid(name, "0 is not a base")
	}
	return theta
}

// needed is a required number of a type of RoPE.
func (rope *ropeConfig) needed(name string) float64 {
	if _, there := rope.members[name]; !there {
		rope.unsaid(name, "is absent")
	}
	return rope.number(0, name)
}

// stretch is yarn's factor; null: the ratio of all positions to the trained ones.
func (rope *ropeConfig) stretch() float64 {
	if !rope.isNull("factor") {
		return rope.needed("factor")
	}
	return float64(rope.positions) / float64(max(1, rope.trained()))
}

// trained is original_max_position_embeddings. The outer config's precedes the parameters' except
// in Gemma 3; the default is max_position_embeddings (standardize_rope_params).
func (rope *ropeConfig) trained() int64 {
	const name = "original_max_position_embeddings"
	if _, there := rope.outer.members[name]; there && !rope.nested {
		return rope.outer.whole(0, name)
	}
	return rope.whole(rope.positions, name)
}

// width is the rotated part of a head, 0 for all of it. In these families only types with a scaling
// read it, except Phi-3.
func (rope *ropeConfig) width() int64 {
	const name = "partial_rotary_factor"
	holder := rope.config
	if _, there := rope.members[name]; !there {
		holder = rope.outer
	}
	part := holder.numberOrNull(1, name)
	width := int64(float64(rope.headDim) * part)
	if part > 1 || width == 0 {
		holder.unsaid(name, "%v is not a share of %d dimensions", part, rope.headDim)
		return 0
	}
	if width == rope.headDim {
		return 0
	}
	return width
}

// attentionFactor is yarn's factor of cosines and sines if the parameters have it, or a ratio of
// two logarithms for it; else 0 (_compute_yarn_parameters).
func (rope *ropeConfig) attentionFactor(stretch float64) float64 {
	if given := rope.numberOrNull(-1, "attention_factor"); given >= 0 {
		if given == 0 {
			rope.unsaid("attention_factor", "0 leaves nothing of q and k")
		}
		return given
	}
	over, under := rope.numberOrNull(0, "mscale"), rope.numberOrNull(0, "mscale_all_dim")
	if over == 0 || under == 0 || stretch <= 1 {
		return 0
	}
	factor := (0.1*over*math.Log(stretch) + 1) / (0.1*under*math.Log(stretch) + 1)
	if factor > maxNumber {
		rope.unsaid("mscale", "%v makes a factor of %.3g", over, factor)
		return 0
	}
	return factor
}
