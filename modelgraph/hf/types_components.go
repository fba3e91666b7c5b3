package hf

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/internal/embedded"
)

// componentTypesGz holds diffusers' model classes, as [typesGz] those of
// Transformers: a constructor's arguments are a class's config
// (fixtures/oracle/diffusing.py writes it).
//
//go:embed types-diffusers.jsonl.gz
var componentTypesGz []byte

// components is the release of diffusers that has a table.
var components = &release{name: "0.42.1", table: embedded.New("types-diffusers.jsonl.gz", componentTypesGz)}

// className is the member that names a component's class.
const className = "_class_name"

// isComponent reports the config of a component of a diffusion pipeline.
func isComponent(cfg *config) bool {
	return cfg != nil && cfg.name(className) != "" && cfg.name("model_type") == "" && cfg.fault() == nil
}

// componentTree are a component's tensors by the table of diffusers.
func componentTree(cfg *config) (*typeTree, *typeClass, *typeObject, error) {
	tree := &typeTree{file: cfg.file, in: components, ties: make(map[string]string), units: make(map[string]string)}
	class := line[typeClass](components, "class", cfg.name(className))
	if class == nil {
		return nil, nil, nil, &modelgraph.SyntaxError{File: cfg.file, Place: className, Msg: fmt.Sprintf("%q is not in the table of diffusers %s; %s", clipName(cfg.name(className)), components.name, wayOut)}
	}
	from := &objects{file: cfg.file, in: components}
	said := plainMembers(cfg)
	maps.DeleteFunc(said, func(field string, _ any) bool { return strings.HasPrefix(field, "_") })
	root := from.read("", class.Config, said, nil)
	if from.err != nil {
		return nil, nil, nil, ofDiffusers(from.err)
	}
	return tree, class, root, ofDiffusers(tree.add(class, root, "", nil, true))
}

// fromComponent builds a component. Its weights are BF16, as diffusers' own
// pages load them: a config does not say.
func fromComponent(cfg *config, source string, data []byte) (*modelgraph.Graph, error) {
	tree, class, root, err := componentTree(cfg)
	if err != nil {
		return nil, err
	}
	layers := tree.layers(class, modelgraph.BF16)
	graph, err := modelgraph.New(modelName(cfg, source), layers, tree.tied())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.file, err)
	}
	graph.Source, graph.Config, graph.Class, graph.Family, graph.DType = source, data, class.Class, "diffusers", modelgraph.BF16
	graph.Unknown = []string{fmt.Sprintf("%s %q: its layers are known by their sizes alone", className, clipName(class.Class))}
	for _, field := range slices.Sorted(maps.Keys(root.extra)) {
		graph.Warnings = append(graph.Warnings, fmt.Sprintf("%s: %s has no field %q: diffusers ignores it, and so does devmap", cfg.file, class.Class, clipName(field)))
	}
	graph.Warnings = append(graph.Warnings, tree.warnings...)
	graph.Warnings = append(graph.Warnings, fmt.Sprintf("%s: its tensors are from the table of diffusers %s; weights only, peaks of inference are not known", class.Class, components.name))
	return graph, nil
}

// ofDiffusers names the library in an error of the table.
func ofDiffusers(err error) error {
	var fault *typeError
	if errors.As(err, &fault) {
		fault.Text = strings.ReplaceAll(fault.Text, "Transformers "+components.name, "diffusers "+components.name)
	}
	return err
}
