package hf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// notKnown is in the error of a reader that does not know a field's effect.
const notKnown = "not known here"

// explains reports a config that the table may read: its type or class has no reader, or the
// reader lacks a field's effect or default.
func (in *release) explains(cfg *config, err error) bool {
	var syn *modelgraph.SyntaxError
	var field *unknownFieldError
	switch {
	case errors.As(err, new(*unknownFamilyError)):
		return in.configOf(cfg.name("model_type")) != ""
	case errors.As(err, &field) && field.Value == "", errors.As(err, &syn) && strings.Contains(syn.Msg, notKnown):
		_, _, fault := in.treeOf(cfg)
		return fault == nil
	case errors.As(err, &syn) && syn.Place == "architectures[0]":
		return in.named(cfg.name("model_type"), cfg.strs("architectures")[0]) != nil
	}
	return false
}

// graph is the graph of a config alone. The layers are known by their sizes alone.
func (in *release) graph(cfg *config, tree *typeTree, class *typeClass, name, source string) (*modelgraph.Graph, error) {
	kind, named := cfg.name("model_type"), len(cfg.strs("architectures")) > 0
	dtype, given := modelDType(cfg)
	if cfg.fault() != nil {
		return nil, cfg.fault()
	}
	graph, operates := tree.operatingGraph(class, dtype, name, cfg.shared.in)
	if !operates {
		var err error
		if graph, err = modelgraph.New(name, tree.layers(class, dtype, nil), tree.tied()); err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.file, err)
		}
	}
	if operates {
		addTapes(tree, class, graph.Layers, tree.reviewed)
	}
	if !tree.reviewed {
		if err := tree.join(graph); err != nil {
			return nil, fmt.Errorf("%s: %w", cfg.file, err)
		}
	}
	graph.Source, graph.Class, graph.Family = source, class.Class, kind
	if given {
		graph.DType = dtype
	}
	graph.Unknown = []string{fmt.Sprintf("model_type %q: its layers are known by their sizes alone", clipName(kind))}
	if operates && !tree.reviewed {
		graph.MaxSeq = tree.root.longest()
		graph.Unknown = []string{fmt.Sprintf("model_type %q: its layers are known by their operations' sizes, not by their formulas", clipName(kind))}
	}
	graph.AutoClass = in.loader(kind, class.Class)
	if own := in.native(cfg); own != "" {
		graph.Warnings = append(graph.Warnings, fmt.Sprintf("auto_map: with trust_remote_code, Transformers builds a %q of the repository's own code, which may have other tensors; without, its own %s, which is counted", clipName(own), class.Class))
	}
	graph.Warnings = slices.Concat(graph.Warnings, in.note(cfg, kind, tree, operates), assumed(class.Class, named, given, dtype), choices(class.Class), tree.root.misspelt())
	return graph, nil
}

// note names the table that the tensors are from, and says what was not compared.
func (in *release) note(cfg *config, kind string, tree *typeTree, operates bool) []string {
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
	return []string{fmt.Sprintf("model_type %q is read from the table of Transformers %s: %s; %s", clipName(kind), in.name, whole, rest)}
}

// named is the class of a type that architectures names. Auto classes give a class of the text model
// the config inside (auto_factory.py, from_config). Nil if the table lacks it.
func (in *release) named(kind, name string) *typeClass {
	config := in.configOf(kind)
	if outer := line[typeConfig](in, "config", config); outer != nil && in.makes(kind, name) {
		if class := in.class(name, config); class != nil && (class.Config == config || class.Config == outer.Inner["text_config"].Config) {
			return class
		}
	}
	return nil
}

// treeOf are the tensors of a config by the table of a release.
func (in *release) treeOf(cfg *config) (*typeTree, *typeClass, error) {
	return in.treeAs(cfg, cfg.strs("architectures"))
}

// treeAs is the tree and class of the first of names, else of the class that the config means.
func (in *release) treeAs(cfg *config, names []string) (*typeTree, *typeClass, error) {
	tree := &typeTree{file: cfg.file, in: in, ties: make(map[string]string), units: make(map[string]string)}
	if in.native(cfg) != "" {
		names = nil
	}
	class, err := tree.classOf(cfg.name("model_type"), names)
	if err != nil {
		return nil, nil, err
	}
	if own := ownCode(cfg, []string{class.Class}); own != "" && in.native(cfg) == "" {
		return nil, nil, &typeError{cfg.file, "auto_map", fmt.Sprintf("it says that the model is a %q of its own code", clipName(own))}
	}
	from := &objects{file: cfg.file, in: in}
	root := from.read("", in.configOf(cfg.name("model_type")), plainMembers(cfg), nil)
	if from.err != nil {
		return nil, class, from.err
	}
	if text := root.inner["text_config"]; class.Config != root.class.Config {
		if root = text; text == nil || text.class.Config != class.Config {
			return nil, class, &typeError{cfg.file, "text_config", fmt.Sprintf("it is not of a %s", class.Class)}
		}
	}
	if pinned := in.pinnedClass(class.Class, root); pinned != nil {
		class = pinned
	}
	tree.wide = class.float32Names(loaded(cfg))
	tree.root = root
	err = tree.add(class, root, "", nil, true)
	return tree, class, err
}

// native is the class of a repository's code if architectures and auto_map name it, and the release
// has the type but no such class. Without trust_remote_code, Transformers builds its own class of
// the type.
func (in *release) native(cfg *config) string {
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

// classOf is the class that a config means.
func (tree *typeTree) classOf(kind string, names []string) (*typeClass, error) {
	in := tree.in
	if in.configOf(kind) == "" {
		return nil, &typeError{tree.file, "model_type", unknownType(kind) + fmt.Sprintf(", and Transformers %s has no such type", in.name)}
	}
	if len(names) > 0 {
		class := in.named(kind, names[0])
		if class == nil {
			return nil, &typeError{tree.file, "architectures[0]", fmt.Sprintf("%q with model_type %q is not in the table of Transformers %s", clipName(names[0]), clipName(kind), in.name)}
		}
		return class, nil
	}
	if class := in.class(usualClass[kind], in.configOf(kind)); class != nil {
		return class, nil
	}
	for _, auto := range autoOrder {
		if class := in.class(in.auto(kind, auto), in.configOf(kind)); class != nil && class.Config == in.configOf(kind) {
			return class, nil
		}
	}
	return nil, &typeError{tree.file, "model_type", fmt.Sprintf("%q is not in the table of Transformers %s", clipName(kind), in.name)}
}

// usualClass is the class of a type whose checkpoints are mostly of another class than the first of
// [autoOrder].
var usualClass = map[string]string{
	"bart": "BartForConditionalGeneration", "camembert": "CamembertForMaskedLM", "electra": "ElectraForPreTraining",
	"roberta": "RobertaForMaskedLM", "xlm-roberta": "XLMRobertaForMaskedLM",
}
