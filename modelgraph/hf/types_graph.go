package hf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// notKnown is in the error of a reader that does not know a field's effect.
const notKnown = "not known here"

// explains reports a config that the table may read: its type or class has no reader, or the
// reader lacks a field's effect or default.
func explains(in *tables.Release, cfg *config, err error) bool {
	var syn *modelgraph.SyntaxError
	var field *tables.FieldError
	switch {
	case errors.As(err, new(*unknownFamilyError)):
		return in.ConfigOf(cfg.name("model_type")) != ""
	case errors.As(err, &field) && field.Value == "", errors.As(err, &syn) && strings.Contains(syn.Msg, notKnown):
		_, _, fault := treeOfTable(in, cfg)
		return fault == nil
	case errors.As(err, &syn) && syn.Place == "architectures[0]":
		names := cfg.strs("architectures") // none: the table alone has the family's usual class
		return len(names) == 0 || in.Named(cfg.name("model_type"), names[0]) != nil
	}
	return false
}

// graphOfTable is the graph of a config alone. The layers are known by their sizes alone.
func graphOfTable(in *tables.Release, cfg *config, tree *tables.Tree, class *tables.Class, name, source string) (*modelgraph.Graph, error) {
	kind, named := cfg.name("model_type"), len(cfg.strs("architectures")) > 0
	dtype, given := modelDType(cfg)
	if cfg.fault() != nil {
		return nil, cfg.fault()
	}
	graph, operates, err := tree.Graph(class, dtype, name, cfg.shared.in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.file, err)
	}
	graph.Source, graph.Class, graph.Family = source, class.Class, kind
	if given {
		graph.DType = dtype
	}
	switch {
	case operates && !tree.Reviewed:
		graph.Unknown = []string{fmt.Sprintf("model_type %q: its layers are known by their operations' sizes, not by their formulas", clipName(kind))}
	case !tree.Runs:
		graph.Unknown = []string{fmt.Sprintf("model_type %q: its layers are known by their sizes alone", clipName(kind))}
	}
	graph.AutoClass = in.Loader(kind, class.Class)
	if own := nativeClass(in, cfg); own != "" {
		graph.Warnings = append(graph.Warnings, fmt.Sprintf("auto_map: with trust_remote_code, Transformers builds a %q of the repository's own code, which may have other tensors; without, its own %s, which is counted", clipName(own), class.Class))
	}
	graph.Warnings = slices.Concat(graph.Warnings, noteOfTable(in, cfg, tree, operates), assumed(class.Class, named, given, dtype), choices(class.Class), overridden(cfg, class, graph), tree.Root.Misspelt())
	return graph, nil
}

// noteOfTable names the table that the tensors are from, and says what was not compared.
func noteOfTable(in *tables.Release, cfg *config, tree *tables.Tree, operates bool) []string {
	if tree.Reviewed {
		return nil
	}
	whole := "weights, ties, buffers and units that are not split are exact"
	if tree.Outermost {
		whole = "weights, ties and buffers are exact, the modules of its outermost lists are not split (Transformers names none here)"
	}
	if cfg.has("quantization_config") {
		whole = "unquantised " + whole
	}
	rest := "activations are not counted (devmap.export(module) describes them), and no map was tried (devmap check --run does)"
	if operates {
		rest = fmt.Sprintf("what its layers compute is experimental: as devmap.export sees it in Transformers %s, on small models", tables.Newest.Name)
	}
	return []string{fmt.Sprintf("model_type %q is read from the table of Transformers %s: %s; %s", clipName(cfg.name("model_type")), in.Name, whole, rest)}
}

// treeOfTable are the tensors of a config by the table of a release.
func treeOfTable(in *tables.Release, cfg *config) (*tables.Tree, *tables.Class, error) {
	return treeOfClass(in, cfg, cfg.strs("architectures"))
}

// treeOfClass is the tree and class of the first of names, else of the class that the config means.
func treeOfClass(in *tables.Release, cfg *config, names []string) (*tables.Tree, *tables.Class, error) {
	kind := cfg.name("model_type")
	if nativeClass(in, cfg) != "" {
		names = nil
	}
	if in.ConfigOf(kind) == "" {
		return nil, nil, &tables.Error{File: cfg.file, Field: "model_type", Text: unknownType(kind) + fmt.Sprintf(", and Transformers %s has no such type", in.Name)}
	}
	class, err := in.ClassOf(cfg.file, kind, names)
	if err != nil {
		return nil, nil, err
	}
	if own := ownCode(cfg, []string{class.Class}); own != "" && nativeClass(in, cfg) == "" {
		return nil, nil, &tables.Error{File: cfg.file, Field: "auto_map", Text: fmt.Sprintf("it says that the model is a %q of its own code", clipName(own))}
	}
	return in.Tree(cfg.file, class, in.ConfigOf(kind), plainMembers(cfg), loaded(cfg))
}

// nativeClass is the class of a repository's code if architectures and auto_map name it, and the release
// has the type but no such class. Without trust_remote_code, Transformers builds its own class of
// the type.
func nativeClass(in *tables.Release, cfg *config) string {
	kind, names := cfg.name("model_type"), cfg.strs("architectures")
	if len(names) == 0 || in.ConfigOf(kind) == "" || in.Makes(kind, names[0]) || ownCode(cfg, nil) != names[0] {
		return ""
	}
	return names[0]
}

// overridden says that T5's head shares the embedding whatever the config says, and that files may have another.
func overridden(cfg *config, class *tables.Class, graph *modelgraph.Graph) []string {
	if !strings.HasSuffix(class.Config, "T5Config") || class.Class[len(class.Config)-len("Config"):] != "ForConditionalGeneration" || cfg.bool(true, "tie_word_embeddings") {
		return nil
	}
	shared := graph.Layers[0].Params[0]
	return []string{fmt.Sprintf("tie_word_embeddings is false, which T5Config overrides: from the config alone the head shares the embedding; files that hold lm_head.weight (T5 v1.1, Flan-T5) load it apart, %d parameters more", tables.Elements(shared.Shape))}
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
