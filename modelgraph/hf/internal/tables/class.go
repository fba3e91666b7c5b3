package tables

import (
	"fmt"
	"maps"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
)

// ClassOf is the class of a type that architectures names, else the one that Auto classes choose.
func (in *Release) ClassOf(file, kind string, names []string) (*Class, error) {
	if len(names) > 0 {
		class := in.Named(kind, names[0])
		if class == nil {
			return nil, &Error{File: file, Field: "architectures[0]", Text: fmt.Sprintf("%q with model_type %q is not in the table of Transformers %s", spell.Clip(names[0]), spell.Clip(kind), in.Name)}
		}
		return class, nil
	}
	config := in.ConfigOf(kind)
	if class := in.Class(usualClass[kind], config); class != nil && config != "" {
		return class, nil
	}
	for _, auto := range autoOrder {
		if class := in.Class(in.auto(kind, auto), config); class != nil && class.Config == config {
			return class, nil
		}
	}
	return nil, &Error{File: file, Field: "model_type", Text: fmt.Sprintf("%q is not in the table of Transformers %s", spell.Clip(kind), in.Name)}
}

// usualClass is the class of a type whose checkpoints are mostly of another class than the first of
// [autoOrder].
var usualClass = map[string]string{
	"bart": "BartForConditionalGeneration", "bert": "BertForMaskedLM", "big_bird": "BigBirdForPreTraining", "camembert": "CamembertForMaskedLM", "electra": "ElectraForPreTraining", "longformer": "LongformerForMaskedLM",
	"roberta": "RobertaForMaskedLM", "xlm-roberta": "XLMRobertaForMaskedLM",
}

// Makes reports that a release has a class of a type, in an Auto class or in the table.
func (in *Release) Makes(kind, name string) bool {
	class := line[Class](in, "class", name)
	if class != nil && class.Config == in.ConfigOf(kind) {
		return true
	}
	autos := line[map[string]string](in, "type", kind)
	return autos != nil && slices.Contains(slices.Collect(maps.Values(*autos)), name)
}

// Named is the class of a type that architectures names. Auto classes give a class of the text model
// the config inside (auto_factory.py, from_config). Nil if the table lacks it.
func (in *Release) Named(kind, name string) *Class {
	config := in.ConfigOf(kind)
	if outer := line[ConfigClass](in, "config", config); outer != nil && in.Makes(kind, name) {
		if class := in.Class(name, config); class != nil && (class.Config == config || class.Config == outer.Inner["text_config"].Config) {
			return class
		}
	}
	return nil
}

// root reads the fields of a config of a config class.
func (in *Release) root(file, config string, members map[string]any) (*Object, error) {
	from := &objects{file: file, in: in}
	return from.read("", config, members, nil), from.err
}

// Tree makes the tensors of a class from the members of a config of a config class. The class
// returned is the line that the config's fields choose. With an error, there may be a tree too.
func (in *Release) Tree(file string, class *Class, config string, members map[string]any, dtype modelgraph.DType) (*Tree, *Class, error) {
	root, err := in.root(file, config, members)
	if err != nil {
		return nil, class, err
	}
	if text := root.inner["text_config"]; class.Config != root.class.Config {
		if root = text; text == nil || text.class.Config != class.Config {
			return nil, class, &Error{File: file, Field: "text_config", Text: fmt.Sprintf("it is not of a %s", class.Class)}
		}
	}
	if pinned := in.pinnedClass(class.Class, root); pinned != nil {
		class = pinned
	}
	tree := &Tree{file: file, in: in, Ties: make(map[string]string), Units: make(map[string]string), wide: class.Float32Names(dtype), Root: root}
	err = tree.add(class, root, "", nil, true)
	return tree, class, err
}

// Graph makes a graph of the tensors; operates: its layers have operations.
func (tree *Tree) Graph(class *Class, dtype modelgraph.DType, name string, said *Release) (graph *modelgraph.Graph, operates bool, err error) {
	if fault := class.sides(tree, tree.Root); fault != nil {
		fault.File = "" // the caller adds it
		return nil, false, fault
	}
	graph, operates = tree.operatingGraph(class, dtype, name, said)
	if !operates {
		if graph, err = modelgraph.New(name, tree.Layers(class, dtype, nil), tree.Tied()); err == nil {
			err = tree.join(graph)
		}
		return graph, false, err
	}
	if tree.Reviewed { // the newest line also serves older releases, whose steps differ
		AddTapes(said, tree, class, graph.Layers, true)
		return graph, true, nil
	}
	AddTapes(tree.in, tree, class, graph.Layers, false)
	graph.MaxSeq = tree.Root.longest()
	return graph, true, tree.join(graph)
}
