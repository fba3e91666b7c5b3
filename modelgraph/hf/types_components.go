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

// className is the member that names a component's class.
const className = "_class_name"

// policies are LeRobot's policies in the table, by type: class, and the code that
// fixtures/oracle/published.py describes.
var policies = map[string]struct{ class, source string }{
	"pi0":      {"LerobotPI0", "policies/pi0/modeling_pi0.py"},
	"pi0_fast": {"LerobotPI0Fast", "policies/pi0_fast/modeling_pi0_fast.py"},
}

// component is the table's class of a config without model_type: a component of a diffusion
// pipeline, or a policy. Empty if there is none.
func component(cfg *config) string {
	switch {
	case cfg == nil || cfg.has("model_type"):
		return ""
	case cfg.has(className):
		return cfg.name(className)
	case cfg.has("type") && cfg.has("input_features"):
		return policies[cfg.name("type")].class
	}
	return ""
}

// componentTree are a component's tensors by the table of diffusers.
func componentTree(cfg *config) (*tables.Tree, *tables.Class, error) {
	name := component(cfg)
	class := tables.Components.Class(name, "")
	if class == nil {
		place := className
		if !cfg.has(className) {
			place = "type"
		}
		return nil, nil, &modelgraph.SyntaxError{File: cfg.file, Place: place, Msg: fmt.Sprintf("%q is not in the table of diffusers %s; %s", clipName(name), tables.Components.Name, spell.WayOut)}
	}
	said := plainMembers(cfg)
	maps.DeleteFunc(said, func(field string, _ any) bool { return strings.HasPrefix(field, "_") })
	if !cfg.has(className) {
		if err := policy(cfg, class.Class, said); err != nil {
			return nil, nil, err
		}
	}
	tree, class, err := tables.Components.Tree(cfg.file, class, class.Config, said, modelgraph.BF16)
	return tree, class, ofDiffusers(err)
}

// policy reduces a LeRobot policy's config to the table's fields. Before version 0.4 the code built
// other modules, and had the field proj_width.
func policy(cfg *config, class string, said map[string]any) error {
	if said["proj_width"] != nil {
		return &tables.Error{File: cfg.file, Field: "proj_width", Text: fmt.Sprintf("the config is of a LeRobot before 0.4, whose %s has other modules", class)}
	}
	if sides, ok := said["image_resolution"].([]any); ok && len(sides) == 2 && tables.DeepEqual(sides[0], sides[1]) {
		said["image_side"] = sides[0]
	}
	return nil
}

// fromComponent builds a component. A config has no type: weights are BF16, as on diffusers' pages.
func fromComponent(cfg *config, source string, data []byte) (*modelgraph.Graph, error) {
	if cfg.has("quantization_config") {
		return nil, &tables.Error{File: cfg.file, Field: "quantization_config", Text: fmt.Sprintf("the table of diffusers %s does not say which weights of a %q are linear layers, which quantization stores otherwise", tables.Components.Name, clipName(component(cfg)))}
	}
	tree, class, err := componentTree(cfg)
	if err != nil {
		return nil, err
	}
	layers := tree.Layers(class, modelgraph.BF16, nil)
	graph, err := modelgraph.New(modelName(cfg, source), layers, tree.Tied())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.file, err)
	}
	graph.Source, graph.Config, graph.Class, graph.Family, graph.DType = source, data, class.Class, "diffusers", modelgraph.BF16
	if !cfg.has(className) {
		graph.Family = "lerobot"
	}
	graph.Unknown = []string{fmt.Sprintf("%s %q: its layers are known by their sizes alone", className, clipName(class.Class))}
	for _, field := range slices.Sorted(maps.Keys(tree.Root.Extra)) {
		if !cfg.has(className) { // a policy's other settings
			break
		}
		graph.Warnings = append(graph.Warnings, fmt.Sprintf("%s: %s has no field %q: diffusers ignores it, and so does devmap", cfg.file, class.Class, clipName(field)))
	}
	from := "the table of diffusers " + tables.Components.Name
	if !cfg.has(className) {
		from = "LeRobot's " + policies[cfg.name("type")].source + " as of 2026-11-29"
	}
	graph.Warnings = append(graph.Warnings, fmt.Sprintf("%s: its tensors are from %s; weights only, peaks of inference are not known", class.Class, from))
	return graph, nil
}

// ofDiffusers names the library in an error of the table.
func ofDiffusers(err error) error {
	var fault *tables.Error
	if errors.As(err, &fault) {
		fault.Text = strings.ReplaceAll(fault.Text, "Transformers "+tables.Components.Name, "diffusers "+tables.Components.Name)
	}
	return err
}
