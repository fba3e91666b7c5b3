package hf

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// unknownFamilyError is a config whose model_type has no rules here.
type unknownFamilyError struct {
	File, ModelType string
	// Fields are not a llama's, with values; fields that add modules are first.
	Fields []string
}

// Error implements error.
func (err *unknownFamilyError) Error() string {
	what := unknownType(err.ModelType)
	const maxNamed = 3
	switch count := len(err.Fields); {
	case count == 0:
		what += ", and its fields alone do not say what its layers hold"
	case count == 1:
		what += fmt.Sprintf(", and %s is no field of a llama", err.Fields[0])
	case count > maxNamed:
		what += fmt.Sprintf(", and %s and %d more are no fields of a llama", strings.Join(err.Fields[:maxNamed], ", "), count-maxNamed)
	default:
		what += fmt.Sprintf(", and %s are no fields of a llama", strings.Join(err.Fields, ", "))
	}
	if err.ModelType != "" {
		what += fmt.Sprintf("; Transformers %s, the newest known here, lacks the type", tables.Newest.Name)
	}
	return fmt.Sprintf("%s: %s; %s", err.File, what, spell.WayOut)
}

func unknownType(modelType string) string {
	if modelType == "" {
		return "there is no model_type"
	}
	return fmt.Sprintf("model_type %q is not known%s", clipName(modelType), meantType(modelType))
}

// meantType suggests the known type that differs in a letter of four; empty if none does.
func meantType(modelType string) string {
	near := modelgraph.Nearest(modelType, slices.Sorted(maps.Keys(families)), 1, max(1, len(modelType)/4))
	if len(near) == 0 || near[0] == modelType || len(modelType) < 3 {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", near[0])
}

// unknownFamily lists the fields that show that the model is no llama.
func unknownFamily(cfg *config, modelType string) error {
	fresh := cfg.again()
	llama(fresh)
	err := &unknownFamilyError{File: cfg.file, ModelType: modelType}
	var rest []string
	for _, name := range slices.Sorted(maps.Keys(cfg.members)) {
		v := cfg.members[name]
		if fresh.shared.read[name] || tables.Harmless[name] || tables.AnyToken(name) || name == "tie_word_embeddings" || empty(v) {
			continue
		}
		field := spell.Plain(name) + " " + short(v)
		if v.Kind() == '{' || v.Kind() == '[' || len(v) > 20 {
			field = spell.Plain(name)
		}
		if tables.Adds(name) {
			err.Fields = append(err.Fields, field)
		} else {
			rest = append(rest, field)
		}
	}
	err.Fields = append(err.Fields, rest...)
	return err
}

// llamaFields are required for a try as llama.
var llamaFields = []string{"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size"}

// asLlama reads a config of no known family as a llama, which only the names and shapes of all its
// files can prove. Nil if it makes none.
func asLlama(cfg *config) (*modelgraph.Graph, *family) {
	fresh := cfg.again()
	for _, name := range llamaFields {
		if !fresh.has(name) {
			return nil, nil
		}
	}
	f := families["llama"]
	fresh = fresh.filled("llama")
	graph, err := f.graph(fresh, f.usual())
	if err != nil {
		return nil, nil
	}
	graph.MaxSeq, graph.Unknown = f.longest(fresh), f.unsaid(cfg, true)
	graph.Warnings = append(graph.Warnings, unknownType(cfg.name("model_type"))+": read as llama, whose names and shapes its files have; what its layers compute may differ")
	return graph, f
}

// unknown is the reason why the config makes no graph, if names or files still can: its family,
// class or a field is not known.
func unknown(err error) string {
	var family *unknownFamilyError
	var field *tables.FieldError
	var syn *modelgraph.SyntaxError
	switch {
	case errors.As(err, &family):
		return unknownType(family.ModelType)
	case errors.As(err, &field):
		return fmt.Sprintf("the field %s is not known to be harmless for model_type %q", spell.Plain(field.Field), clipName(field.ModelType))
	case errors.As(err, &syn) && (syn.Place == "architectures[0]" || syn.Place == "auto_map"):
		return strings.TrimSuffix(syn.Msg, "; "+spell.WayOut)
	}
	return ""
}
