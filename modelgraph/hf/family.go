package hf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// family holds the rules of one model_type.
type family struct {
	// types are the values of model_type that mean this family.
	types []string
	// class is the class where architectures names none.
	class string
	// classes are all the classes it can build.
	classes []string
	// build adds the modules of class to b.
	build func(b *builder, c *config, class string)
	// maxSeq reads the longest sequence; nil: max_position_embeddings.
	maxSeq func(c *config) int64
}

var families = make(map[string]*family)

// register adds a family to the table; called from init of its file.
func register(f family) {
	for _, t := range f.types {
		families[t] = &f
	}
}

// Families lists the model types that can be built from a config alone.
func Families() []string {
	names := make([]string, 0, len(families))
	for n := range families {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// UnknownFamilyError is a config whose model_type has no rules here.
type UnknownFamilyError struct {
	File, ModelType string
	Missing         []string // fields that a llama-like reading would need
}

// Error implements error.
func (e *UnknownFamilyError) Error() string {
	what := fmt.Sprintf("model_type %q is not known", e.ModelType)
	if e.ModelType == "" {
		what = "there is no model_type"
	}
	return fmt.Sprintf("%s: %s, and reading it as llama needs %s; give the folder with its safetensors files, or describe the model in a model.json",
		e.File, what, strings.Join(e.Missing, ", "))
}

// llamaFields are what a config must have to be read as llama.
var llamaFields = []string{"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"}

// familyOf finds the rules for a config; the warning says when it is a guess.
func familyOf(c *config) (f *family, warning string, err error) {
	modelType := c.str("", "model_type")
	if *c.fault != nil {
		return nil, "", *c.fault
	}
	if f := families[modelType]; f != nil {
		return f, "", nil
	}
	var missing []string
	for _, n := range llamaFields {
		if !c.has(n) {
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		return nil, "", &UnknownFamilyError{File: c.file, ModelType: modelType, Missing: missing}
	}
	return families["llama"], fmt.Sprintf("model_type %q is not known: read as llama, from its fields; names and sizes may differ from the real model's", modelType), nil
}

// classOf is the class that architectures names, else the family's.
func (f *family) classOf(c *config, guessed bool) (string, error) {
	names := c.strs("architectures")
	if len(names) == 0 || guessed {
		return f.class, nil
	}
	if slices.Contains(f.classes, names[0]) {
		return names[0], nil
	}
	return "", &modelgraph.SyntaxError{File: c.file, Place: "architectures[0]", Msg: fmt.Sprintf(
		"%q is not a class of %s that is known here (known: %s)", names[0], strings.Join(f.types, "/"), strings.Join(f.classes, ", "))}
}

// modelDType is the type that the config gives the weights; BF16 where it
// gives none.
func modelDType(c *config) (modelgraph.DType, bool) {
	for _, s := range []*config{c, c.sub("text_config"), c.sub("llm_config")} {
		name := s.pick([]string{"dtype", "torch_dtype"})
		if !s.has(name) {
			continue
		}
		d, err := modelgraph.ParseDType(strings.TrimPrefix(s.str("", name), "torch."))
		if err != nil {
			s.fail(name, "%v", err)
		}
		return d, true
	}
	return modelgraph.BF16, false
}
