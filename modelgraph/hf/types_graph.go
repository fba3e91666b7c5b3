package hf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph"
)

// notKnown is in the error of a reader that does not know a field's effect.
const notKnown = "not known here"

// explains reports a config that the table may read: its type or class has no reader, or the
// reader lacks a field's effect or default.
func (cfg *config) explains(in *release, err error) bool {
	var syn *modelgraph.SyntaxError
	var field *unknownFieldError
	switch {
	case errors.As(err, new(*unknownFamilyError)):
		return in.configOf(cfg.name("model_type")) != ""
	case errors.As(err, &field) && field.Value == "", errors.As(err, &syn) && strings.Contains(syn.Msg, notKnown):
		_, _, fault := cfg.treeOf(in)
		return fault == nil
	case errors.As(err, &syn) && syn.Place == "architectures[0]":
		return in.named(cfg.name("model_type"), cfg.strs("architectures")[0]) != nil
	}
	return false
}

// graph is the graph of a config alone. The layers are known by their sizes alone.
func (cfg *config) tableGraph(in *release, tree *typeTree, class *typeClass, name, source string) (*modelgraph.Graph, error) {
	kind, named := cfg.name("model_type"), len(cfg.strs("architectures")) > 0
	dtype, given := modelDType(cfg)
	if cfg.fault() != nil {
		return nil, cfg.fault()
	}
	graph, operates, err := tree.graph(class, dtype, name, cfg.shared.in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.file, err)
	}
	graph.Source, graph.Class, graph.Family = source, class.Class, kind
	if given {
		graph.DType = dtype
	}
	graph.Unknown = []string{fmt.Sprintf("model_type %q: its layers are known by their sizes alone", clipName(kind))}
	if operates && !tree.reviewed {
		graph.Unknown = []string{fmt.Sprintf("model_type %q: its layers are known by their operations' sizes, not by their formulas", clipName(kind))}
	}
	graph.AutoClass = in.loader(kind, class.Class)
	if own := cfg.native(in); own != "" {
		graph.Warnings = append(graph.Warnings, fmt.Sprintf("auto_map: with trust_remote_code, Transformers builds a %q of the repository's own code, which may have other tensors; without, its own %s, which is counted", clipName(own), class.Class))
	}
	graph.Warnings = slices.Concat(graph.Warnings, cfg.tableNote(in, tree, operates), assumed(class.Class, named, given, dtype), choices(class.Class), tree.misspelt())
	return graph, nil
}

// note names the table that the tensors are from, and says what was not compared.
func (cfg *config) tableNote(in *release, tree *typeTree, operates bool) []string {
	if tree.reviewed {
		return nil
	}
	whole := "weights, ties, buffers and units that are not split are exact"
	if tree.outermost {
		whole = "weights, ties and buffers are exact, the modules of its outermost lists are not split (Transformers names none here)"
	}
	if cfg.has("quantization_config") {
		whole = "unquantised " + whole
	}
	rest := "activations are not counted (devmap.export(module) describes them), and no map was tried (devmap check --run does)"
	if operates {
		rest = fmt.Sprintf("what its layers compute is experimental: as devmap.export sees it in Transformers %s, on small models", newest.name)
	}
	return []string{fmt.Sprintf("model_type %q is read from the table of Transformers %s: %s; %s", clipName(cfg.name("model_type")), in.name, whole, rest)}
}

// treeOf are the tensors of a config by the table of a release.
func (cfg *config) treeOf(in *release) (*typeTree, *typeClass, error) {
	return cfg.treeAs(in, cfg.strs("architectures"))
}

// treeAs is the tree and class of the first of names, else of the class that the config means.
func (cfg *config) treeAs(in *release, names []string) (*typeTree, *typeClass, error) {
	kind := cfg.name("model_type")
	if cfg.native(in) != "" {
		names = nil
	}
	if in.configOf(kind) == "" {
		return nil, nil, &typeError{File: cfg.file, Field: "model_type", Text: unknownType(kind) + fmt.Sprintf(", and Transformers %s has no such type", in.name)}
	}
	class, err := in.classOf(cfg.file, kind, names)
	if err != nil {
		return nil, nil, err
	}
	if own := ownCode(cfg, []string{class.Class}); own != "" && cfg.native(in) == "" {
		return nil, nil, &typeError{File: cfg.file, Field: "auto_map", Text: fmt.Sprintf("it says that the model is a %q of its own code", clipName(own))}
	}
	return in.tree(cfg.file, class, in.configOf(kind), plainMembers(cfg), loaded(cfg))
}

// native is the class of a repository's code if architectures and auto_map name it, and the release
// has the type but no such class. Without trust_remote_code, Transformers builds its own class of
// the type.
func (cfg *config) native(in *release) string {
	kind, names := cfg.name("model_type"), cfg.strs("architectures")
	if len(names) == 0 || in.configOf(kind) == "" || in.makes(kind, names[0]) || ownCode(cfg, nil) != names[0] {
		return ""
	}
	return names[0]
}

// assumed lists values that a config alone leaves open.
func assumed(class string, named, given bool, dtype modelgraph.DType) (notes []string) {
	if !named {
		notes = append(notes, fmt.Sprintf("the config names no architectures: %s the class is taken to be %s", fromConfigAlone, class))
	}
	if !given {
		notes = append(notes, fmt.Sprintf("the config names no dtype: %s its weights are counted as %v, as Transformers' from_config makes them (from_pretrained takes the checkpoint's type)", fromConfigAlone, dtype))
	}
	return notes
}

// plainMembers are the members of a config as JSON's own types.
func plainMembers(cfg *config) map[string]any {
	if cfg.plain != nil {
		cfg = cfg.plain
	}
	out := make(map[string]any, len(cfg.members))
	for name, text := range cfg.members {
		var v any
		if err := json.Unmarshal(text, &v); err == nil {
			out[name] = v
		}
	}
	return out
}
