package hf

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
)

// family has the rules of one model_type.
type family struct {
	// types are the values of model_type that mean this family.
	types []string
	// runs: the layers have everything for running, not for costs alone.
	runs bool
	// class is the class if architectures names none.
	class string
	// classes are all buildable classes; nil: the table's that are made like a decoder's.
	classes []string
	// table: the config is filled by the table of config classes.
	table bool
	// also are other names of its causal class.
	also []string
	// kin are classes of another type with the same structure. A config that names one may be read
	// by either type's config class, so it must set all fields in which these differ ([agreed]).
	kin map[string]string
	// agreed are those fields.
	agreed []string
	// build adds the modules of a class.
	build func(modules *builder, cfg *config, class string)
	// unread are fields of the config class, or of its checkpoints' code, that change no shape.
	unread []string
	// maxSeq reads the longest sequence; nil: max_position_embeddings.
	maxSeq func(cfg *config) int64
}

var families = make(map[string]*family)

// ownTypes map classes to a family, for every model_type. Their configs have another's or a later
// model's (LLaVA's first code calls itself llava, as Transformers' does).
var ownTypes = make(map[string]string)

// register adds a family to the table; called from init of its file.
func register(f family) {
	for _, kind := range f.types {
		families[kind] = &f
	}
}

// familyOf finds a config's rules and the class to build. If only architectures names a known
// class, foreign is true. The config class and its defaults are then another model's (Kimi-K2 is a
// DeepseekV3ForCausalLM of type kimi_k2).
func familyOf(cfg *config) (f *family, class string, foreign bool, err error) {
	modelType, names := cfg.name("model_type"), cfg.strs("architectures")
	if err := cfg.fault(); err != nil {
		return nil, "", false, err
	}
	if len(names) > 0 && ownTypes[names[0]] != "" {
		modelType = ownTypes[names[0]]
	}
	if f := families[modelType]; f != nil {
		class, err := f.classOf(cfg, names)
		return f, class, false, err
	}
	if len(names) > 0 {
		if f := familyWith(names[0]); f != nil && ownCode(cfg, f.known()) == "" {
			return f, names[0], true, nil
		}
	}
	return nil, "", false, unknownFamily(cfg, modelType)
}

// familyWith is the family that has a class.
func familyWith(class string) *family {
	for _, f := range families {
		if slices.Contains(f.known(), class) {
			return f
		}
	}
	return nil
}

// known are the classes that the family builds.
func (f *family) known() []string {
	if f.classes == nil {
		return append(tableClasses(f.types[0], []string{"ForCausalLM", "Model", "For" + sequenceClassification, "For" + tokenClassification, "For" + questionAnswering}), f.also...)
	}
	return f.classes
}

// usual is the class if architectures names none.
func (f *family) usual() string {
	if f.class != "" {
		return f.class
	}
	known := f.known()
	if i := slices.IndexFunc(known, func(class string) bool { return strings.HasSuffix(class, "ForCausalLM") }); i >= 0 {
		return known[i]
	}
	return known[0]
}

// classOf is the class that architectures names first, else the family's.
func (f *family) classOf(cfg *config, names []string) (string, error) {
	class := f.usual()
	if len(names) > 0 {
		class = names[0]
	}
	place, fault := "architectures[0]", ""
	if equivalent := f.kin[class]; equivalent != "" {
		for _, name := range f.agreed {
			if !cfg.has(name) {
				return "", &modelgraph.SyntaxError{File: cfg.file, Place: name, Msg: fmt.Sprintf("it is absent, and its default is another for model_type %q than for the %s that architectures names; write it into the file", clipName(cfg.name("model_type")), class)}
			}
		}
		class = equivalent
	}
	if !slices.Contains(f.known(), class) {
		fault = fmt.Sprintf("%q is not a class of %s that is known here or in the table of Transformers %s (known: %s)", clipName(class), strings.Join(f.types, "/"), cfg.shared.in.Name, strings.Join(f.known(), ", "))
	} else if own := ownCode(cfg, f.known()); own != "" {
		place = "auto_map"
		fault = fmt.Sprintf("it says that the model is a %q of its own code, which is not known here (known: %s)", clipName(own), strings.Join(f.known(), ", "))
	}
	if fault != "" {
		return "", &modelgraph.SyntaxError{File: cfg.file, Place: place, Msg: fault + "; " + spell.WayOut}
	}
	return class, nil
}

// ownCode is the class that auto_map loads from code next to the config. Empty if one of its
// classes has a known name: copies of a family's code keep its names (modeling_deepseek.py:
// DeepseekV3ForCausalLM).
func ownCode(cfg *config, known []string) string {
	own := ""
	m := cfg.sub("auto_map")
	for _, auto := range slices.Sorted(maps.Keys(m.members)) {
		if !strings.HasPrefix(auto, "AutoModel") || m.members[auto].Kind() != '"' {
			continue
		}
		class := m.str("", auto)
		if class = class[strings.LastIndexByte(class, '.')+1:]; slices.Contains(known, class) {
			return ""
		}
		own = class
	}
	return own
}

// modelDType is the config's type of the weights; without one F32, torch's default (from_config).
func modelDType(cfg *config) (modelgraph.DType, bool) {
	for _, s := range []*config{cfg, cfg.sub("text_config"), cfg.sub("llm_config")} {
		name := s.pick([]string{"dtype", "torch_dtype"})
		if !s.has(name) {
			continue
		}
		dtype, err := modelgraph.ParseDType(strings.TrimPrefix(s.str("", name), "torch."))
		if err != nil {
			s.fail(name, "%v", err)
		}
		return dtype, true
	}
	return modelgraph.F32, false
}
