package tables_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// parsed is a config with what chooses its class.
type parsed struct {
	Type  string   `json:"model_type"`
	Names []string `json:"architectures"`
	Class string   `json:"_class_name"` // of diffusers
	DType string   `json:"dtype"`
	all   map[string]any
}

func parse(data []byte) (config parsed, err error) {
	err = cmp.Or(json.Unmarshal(data, &config), json.Unmarshal(data, &config.all))
	return config, err
}

// dtype is the type of the config's weights.
func (config *parsed) dtype() modelgraph.DType {
	return cmp.Or(map[string]modelgraph.DType{"bfloat16": modelgraph.BF16, "float16": modelgraph.F16}[config.DType], modelgraph.F32)
}

// treeOf evaluates the table of a release for a config.
func treeOf(in *tables.Release, config *parsed) (*tables.Tree, *tables.Class, error) {
	class, err := in.ClassOf("config.json", config.Type, config.Names)
	if err != nil {
		return nil, nil, err
	}
	return in.Tree("config.json", class, in.ConfigOf(config.Type), config.all, config.dtype())
}

// readTypes reads the tensors of a config by the table of a release.
func readTypes(in *tables.Release, data []byte) (*tables.Tree, error) {
	config, err := parse(data)
	if err != nil {
		return nil, err
	}
	tree, _, err := treeOf(in, &config)
	return sorted(tree, err)
}

// readComponent reads the tensors of a component of a diffusion pipeline.
func readComponent(data []byte) (*tables.Tree, error) {
	config, err := parse(data)
	if err != nil {
		return nil, err
	}
	class := tables.Components.Class(config.Class, "")
	if class == nil {
		return nil, &tables.Error{Field: "_class_name"}
	}
	maps.DeleteFunc(config.all, func(field string, _ any) bool { return strings.HasPrefix(field, "_") })
	tree, _, err := tables.Components.Tree("config.json", class, class.Config, config.all, modelgraph.BF16)
	return sorted(tree, err)
}

// sorted has the tensors in module order, and the units that are not split.
func sorted(tree *tables.Tree, err error) (*tables.Tree, error) {
	if err != nil {
		return tree, err
	}
	maps.DeleteFunc(tree.Units, func(_, class string) bool { return class != "" && !slices.Contains(tree.NoSplit, class) })
	slices.SortStableFunc(tree.Tensors, func(x, y tables.Tensor) int { return slices.Compare(x.Key, y.Key) })
	return tree, nil
}

// tableGraph is the graph of a config by the table, even if a reader reads it.
func tableGraph(data []byte) (*modelgraph.Graph, error) {
	config, err := parse(data)
	if err != nil {
		return nil, err
	}
	tree, class, err := treeOf(tables.Newest, &config)
	if err != nil {
		return nil, err
	}
	graph, _, err := tree.Graph(class, config.dtype(), "m", tables.Newest)
	return graph, err
}
