package hf

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// lacking says in which releases the type or the class of a config is, if not in this one.
func (in *release) lacking(cfg *config) error {
	kind, names := cfg.name("model_type"), cfg.strs("architectures")
	if in.configOf(kind) != "" && len(names) == 0 {
		return nil
	}
	field, what := "model_type", fmt.Sprintf("type %q", clipName(kind))
	has := func(r *release) bool { return r.configOf(kind) != "" }
	if has(in) {
		field, what = "architectures[0]", fmt.Sprintf("class %q", clipName(names[0]))
		has = func(r *release) bool { return r.makes(kind, names[0]) }
	}
	var there []string
	for _, r := range releases {
		if has(r) {
			there = append(there, r.name)
		}
	}
	var next string
	switch version := cfg.lenient("transformers_version"); {
	case has(in):
		return nil
	case len(there) > 0:
		next = fmt.Sprintf("%s has it: give --transformers %s", there[0], there[0])
		if len(there) > 1 {
			next = fmt.Sprintf("%s to %s have it: give --transformers %s", there[0], there[len(there)-1], there[len(there)-1])
		}
	case newer(version, newest.name):
		next = fmt.Sprintf("transformers_version %q is newer than all tables: update devmap, or %s", clipName(version), wayOut)
	default:
		return nil
	}
	return &modelgraph.SyntaxError{File: cfg.file, Place: field, Msg: fmt.Sprintf("Transformers %s has no %s; %s", in.name, what, next)}
}

// makes reports that a release has a class of a type: an Auto class makes it, or
// it is in the table.
func (in *release) makes(kind, name string) bool {
	class := line[typeClass](in, "class", name)
	if class != nil && class.Config == in.configOf(kind) {
		return true
	}
	autos := line[map[string]string](in, "type", kind)
	return autos != nil && slices.Contains(slices.Collect(maps.Values(*autos)), name)
}

// byRelease is the graph of a config alone by its release: the reader's, or that
// of the release's table if there is no reader.
func byRelease(reader *modelgraph.Graph, cfg *config, fault error, name, source string) (graph *modelgraph.Graph, err error) {
	if unknown(fault) == "" {
		return reader, fault
	}
	in := cfg.release()
	if !in.explains(cfg, fault) {
		return nil, cmp.Or(in.lacking(cfg), fault)
	}
	tree, class, err := in.treeOf(cfg)
	if err == nil {
		graph, err = in.graph(cfg, tree, class, name, source)
	}
	if err != nil {
		return nil, cmp.Or(in.lacking(cfg), err)
	}
	if cfg.has("quantization_config") && !tree.linears {
		return nil, &typeError{cfg.file, "quantization_config", fmt.Sprintf("the table of Transformers %s does not say which weights of a %q are linear layers, which quantization stores otherwise", in.name, clipName(cfg.name("model_type")))}
	}
	for _, note := range []string{in.compared(cfg, tree), newerNote(cfg)} {
		if note != "" && !cfg.shared.asked {
			graph.Warnings = append(graph.Warnings, note)
		}
	}
	return graph, nil
}
