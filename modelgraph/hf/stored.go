package hf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/quantised"
)

// fromConfigAlone is in the warnings that files make needless.
const fromConfigAlone = "from the config alone"

// storedElements is the warning that packed weights are counted as stored.
func storedElements(graph *modelgraph.Graph, weights int64) string {
	return fmt.Sprintf("parameters are counted as the elements that are stored: %d, of %s tensors and their tables, stand for %d weights", graph.ParamCount(), graph.Quantized, weights)
}

// storedMethod is the method that Transformers reads of a quantization_config: load_in_4bit and
// load_in_8bit go before quant_method (quantizers/auto.py, from_dict).
func storedMethod(cfg *config) string {
	if !cfg.has("quantization_config") {
		return ""
	}
	section := cfg.sub("quantization_config")
	if section.flag("load_in_4bit") || section.flag("load_in_8bit") {
		return "bitsandbytes"
	}
	return section.name("quant_method")
}

// warnStored warns of the type in which weights count if their stored tensors are not known.
func warnStored(graph *modelgraph.Graph, cfg *config, why string) {
	text := fmt.Sprintf("the config says the weights are stored as %s; "+fromConfigAlone+" they are counted as %v", clipName(storedMethod(cfg)), loaded(cfg))
	if why != "" {
		text += ", because " + why
	}
	graph.Warnings = append(graph.Warnings, text+"; the folder with its safetensors files gives the stored sizes")
}

// asStored is the graph with the stored tensors of the config's format. If they do not follow from
// the config, it is the graph itself, with a warning.
func asStored(graph *modelgraph.Graph, cfg *config) (*modelgraph.Graph, error) {
	if !cfg.has("quantization_config") {
		return graph, nil
	}
	section, method := cfg.sub("quantization_config"), storedMethod(cfg)
	if method == "" {
		cfg.fail("quantization_config", `it has no quant_method, and Transformers refuses such a config: add the method that wrote the weights, as "quant_method": "gptq" or "awq" (fields: %s), or remove quantization_config if they are not quantised`,
			strings.Join(memberNames(section), ", "))
		return nil, cfg.fault()
	}
	format := quantised.Read(graph, storedSection{section}, method, func() string { return cfg.name("transformers_version") }, cfg.shared.linear)
	if fault := cfg.fault(); fault != nil {
		return nil, fault
	}
	layers, ties, missing := format.Stored(graph)
	plain := slices.DeleteFunc(slices.Clone(graph.Warnings), func(word string) bool { return strings.Contains(word, "the weights are stored as") })
	if missing != "" {
		graph.Warnings = plain
		warnStored(graph, cfg, missing)
		return graph, nil
	}
	out, err := relaid(graph, layers, ties)
	if err != nil {
		return nil, err
	}
	out.Quantized, out.Warnings = method, plain
	out.Warnings = append(out.Warnings, storedElements(out, graph.ParamCount()))
	return out, nil
}

// relaid is graph with other layers and ties.
func relaid(graph *modelgraph.Graph, layers []modelgraph.Layer, ties [][]string) (*modelgraph.Graph, error) {
	layers = slices.Clone(layers)
	for i := range layers {
		layers[i].Params = slices.Clone(layers[i].Params)
		for j := range layers[i].Params {
			layers[i].Params[j].Owner = ""
		}
	}
	made, err := modelgraph.New(graph.Name, layers, ties)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", graph.Source, err)
	}
	if err := modelgraph.Join(made, graph.Joined); err != nil {
		return nil, fmt.Errorf("%s: %w", graph.Source, err)
	}
	out := *graph
	out.Layers, out.Units, out.Ties, out.Joined = made.Layers, made.Units, made.Ties, made.Joined
	return &out, nil
}

func memberNames(section *config) []string {
	var names []string
	for name := range section.members {
		names = append(names, clipName(name))
	}
	slices.Sort(names)
	return names[:min(len(names), 10)]
}

// storedSection shows package quantised an object of a config.
type storedSection struct{ of *config }

func (s storedSection) Members() map[string]jsontext.Value    { return s.of.members }
func (s storedSection) Has(name string) bool                  { return s.of.has(name) }
func (s storedSection) Pick(names []string) string            { return s.of.pick(names) }
func (s storedSection) Name(name string) string               { return s.of.name(name) }
func (s storedSection) Flag(name string) bool                 { return s.of.flag(name) }
func (s storedSection) Bool(def bool, names ...string) bool   { return s.of.bool(def, names...) }
func (s storedSection) Dim(def int64, names ...string) int64  { return s.of.dim(def, names...) }
func (s storedSection) Pos(def int64, names ...string) int64  { return s.of.pos(def, names...) }
func (s storedSection) Optional(def int64, name string) int64 { return s.of.optional(def, name) }
func (s storedSection) Dims(name string) []int64              { return s.of.dims(name) }
func (s storedSection) Strs(name string) []string             { return s.of.strs(name) }
func (s storedSection) Fail(name, format string, args ...any) { s.of.fail(name, format, args...) }
func (s storedSection) Sub(name string) quantised.Section     { return storedSection{s.of.sub(name)} }

func (s storedSection) Objects(name string) []quantised.Section {
	var all []quantised.Section
	for _, object := range s.of.objects(name) {
		all = append(all, storedSection{object})
	}
	return all
}
