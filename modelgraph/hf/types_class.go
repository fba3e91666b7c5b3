package hf

import (
	"fmt"
	"maps"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// classOf is the class of a type that architectures names, else the one that Auto classes choose.
func (in *release) classOf(file, kind string, names []string) (*typeClass, error) {
	if len(names) > 0 {
		class := in.named(kind, names[0])
		if class == nil {
			return nil, &typeError{File: file, Field: "architectures[0]", Text: fmt.Sprintf("%q with model_type %q is not in the table of Transformers %s", clipName(names[0]), clipName(kind), in.name)}
		}
		return class, nil
	}
	config := in.configOf(kind)
	if class := in.class(usualClass[kind], config); class != nil && config != "" {
		return class, nil
	}
	for _, auto := range autoOrder {
		if class := in.class(in.auto(kind, auto), config); class != nil && class.Config == config {
			return class, nil
		}
	}
	return nil, &typeError{File: file, Field: "model_type", Text: fmt.Sprintf("%q is not in the table of Transformers %s", clipName(kind), in.name)}
}

// usualClass is the class of a type whose checkpoints are mostly of another class than the first of
// [autoOrder].
var usualClass = map[string]string{
	"bart": "BartForConditionalGeneration", "camembert": "CamembertForMaskedLM", "electra": "ElectraForPreTraining",
	"roberta": "RobertaForMaskedLM", "xlm-roberta": "XLMRobertaForMaskedLM",
}

// makes reports that a release has a class of a type, in an Auto class or in the table.
func (in *release) makes(kind, name string) bool {
	class := line[typeClass](in, "class", name)
	if class != nil && class.Config == in.configOf(kind) {
		return true
	}
	autos := line[map[string]string](in, "type", kind)
	return autos != nil && slices.Contains(slices.Collect(maps.Values(*autos)), name)
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

// root reads the fields of a config of a config class.
func (in *release) root(file, config string, members map[string]any) (*typeObject, error) {
	from := &objects{file: file, in: in}
	return from.read("", config, members, nil), from.err
}

// tree makes the tensors of a class from the members of a config of a config class. The class
// returned is the line that the config's fields choose. With an error, there may be a tree too.
func (in *release) tree(file string, class *typeClass, config string, members map[string]any, dtype modelgraph.DType) (*typeTree, *typeClass, error) {
	root, err := in.root(file, config, members)
	if err != nil {
		return nil, class, err
	}
	if text := root.inner["text_config"]; class.Config != root.class.Config {
		if root = text; text == nil || text.class.Config != class.Config {
			return nil, class, &typeError{File: file, Field: "text_config", Text: fmt.Sprintf("it is not of a %s", class.Class)}
		}
	}
	if pinned := in.pinnedClass(class.Class, root); pinned != nil {
		class = pinned
	}
	tree := &typeTree{file: file, in: in, ties: make(map[string]string), units: make(map[string]string), wide: class.float32Names(dtype), root: root}
	return tree, class, tree.add(class, root, "", nil, true)
}

// graph makes a graph of the tensors; operates: its layers have operations.
func (tree *typeTree) graph(class *typeClass, dtype modelgraph.DType, name string, said *release) (graph *modelgraph.Graph, operates bool, err error) {
	graph, operates = tree.operatingGraph(class, dtype, name, said)
	if !operates {
		if graph, err = modelgraph.New(name, tree.layers(class, dtype, nil), tree.tied()); err != nil {
			return nil, false, err
		}
	}
	if operates {
		addTapes(tree, class, graph.Layers, tree.reviewed)
	}
	if tree.reviewed {
		return graph, operates, nil
	}
	if operates {
		graph.MaxSeq = tree.root.longest()
	}
	return graph, operates, tree.join(graph)
}

// unknown are the fields that the config's class does not have, sorted.
func (tree *typeTree) unknown() []string { return slices.Sorted(maps.Keys(tree.root.extra)) }

// misspelt are notes on fields that the config's class does not read.
func (tree *typeTree) misspelt() []string { return tree.root.misspelt() }

// linears are the modules that are linear layers, with stars; nil if that is not known of all.
func (tree *typeTree) linears(class *typeClass) []string {
	if tree.linear == nil {
		return linearOf(tree, class)
	}
	return tree.linear
}
