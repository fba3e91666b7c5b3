package hf

import "strings"

// namedClass is a class's line.
type namedClass struct {
	namedModel
	Prefix string `json:"prefix"` // base_model_prefix
	// Base: AutoModel makes this class for the type.
	Base bool `json:"base"`
	// Stored are the buffers of the state dict, with a star for each index of a module list.
	Stored []string `json:"stored"`
	// Made are parameters that the code makes in float32 for every loaded type; stars as before.
	Made []string `json:"fp32_made"`
	// Parts are the models inside, in module order.
	Parts []namedPart `json:"parts"`
}

// namedModel is a class's rules for names.
type namedModel struct {
	Class string `json:"class"`
	Type  string `json:"type"` // model_type
	// Ignored are expressions for stored names to skip silently
	// (_keys_to_ignore_on_load_unexpected).
	Ignored []string `json:"ignored"`
	// Float32 are expressions for parameters that stay in that type if the model is float16
	// (_keep_in_fp32_modules); Strict: if it is bfloat16 too.
	Float32 []string `json:"fp32"`
	Strict  []string `json:"fp32_strict"`
}

// namedPart is a model inside another. Class is empty if AutoModel chooses it by the object in the
// config; Type is then the default.
type namedPart struct {
	namedModel
	At     string `json:"at"`     // its path
	Config string `json:"config"` // the path of the object it is made from; "": the whole config
}

// models visits a class and the models inside it, in module order. Their rules of names count for
// the whole if child is true: modeling_utils.py, post_init, asks the direct children.
func (class *namedClass) models(cfg *config, visit func(path string, model *namedModel, child bool)) {
	visit("", &class.namedModel, true)
	class.inside("", cfg, visit)
}

func (class *namedClass) inside(above string, cfg *config, visit func(path string, model *namedModel, child bool)) {
	for i := range class.Parts {
		part := &class.Parts[i]
		path := strings.TrimPrefix(above+"."+part.At, ".")
		child := !strings.Contains(path, ".")
		if part.Class != "" {
			visit(path, &part.namedModel, child)
			continue
		}
		from := cfg
		for key := range strings.SplitSeq(part.Config, ".") {
			from = from.sub(key)
		}
		if inner := baseOf(from.str(part.Type, "model_type")); inner != nil {
			visit(path, &inner.namedModel, child)
			inner.inside(path, from, visit)
		}
	}
}

// classNames is the line of a class. A class without a line gets a replacement: published code has
// no rules; a checkpoint may spell the causal class differently.
func classNames(class, modelType string) *namedClass {
	if named := namedClassOf(class, modelType); named != nil {
		return named
	}
	base := baseOf(modelType)
	if base == nil {
		return &namedClass{namedModel: namedModel{Class: class, Type: modelType}, Prefix: "model"}
	}
	named := &namedClass{namedModel: base.namedModel, Prefix: base.Prefix}
	named.Class = class
	for _, name := range base.Stored {
		named.Stored = append(named.Stored, base.Prefix+"."+name)
	}
	for _, name := range base.Made {
		named.Made = append(named.Made, base.Prefix+"."+name)
	}
	return named
}
