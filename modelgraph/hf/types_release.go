package hf

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// release is the release whose table reads a config. The config's own counts if its table has the
// class, or the newest's lacks it. A named release counts, unless the class is a reviewed one.
func (cfg *config) release() *tables.Release {
	in, kind, names := cfg.shared.in, cfg.name("model_type"), cfg.strs("architectures")
	if _, err := in.ClassOf(cfg.file, kind, names); err == nil || in.At == tables.Newest.At {
		return in
	}
	if _, err := tables.Newest.ClassOf(cfg.file, kind, names); err != nil || cfg.shared.asked && !isReviewed(tables.Newest, cfg) {
		return in
	}
	return tables.Newest.Alone()
}

// isReviewed reports that the operations of a config's class are reviewed.
func isReviewed(in *tables.Release, cfg *config) bool {
	class, err := in.ClassOf(cfg.file, cfg.name("model_type"), cfg.strs("architectures"))
	return err == nil && class.IsReviewed()
}

// lackingFrom names the releases with the config's type or class, if this one has none.
func lackingFrom(in *tables.Release, cfg *config) error {
	kind, names := cfg.name("model_type"), cfg.strs("architectures")
	if in.ConfigOf(kind) != "" && len(names) == 0 {
		return nil
	}
	whose, field, what := "", "model_type", fmt.Sprintf("type %q", clipName(kind))
	has := func(r *tables.Release) bool { return r.ConfigOf(kind) != "" }
	if has(in) {
		whose, field, what = "the table of ", "architectures[0]", fmt.Sprintf("class %q", clipName(names[0]))
		has = func(r *tables.Release) bool { return r.Makes(kind, names[0]) }
	}
	var there []string
	for _, r := range tables.Releases {
		if has(r) {
			there = append(there, r.Name)
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
	case tables.Newer(version, tables.Newest.Name):
		next = fmt.Sprintf("transformers_version %q is newer than all tables: update devmap, or %s", clipName(version), spell.WayOut)
	default:
		return nil
	}
	return &modelgraph.SyntaxError{File: cfg.file, Place: field, Msg: fmt.Sprintf("%sTransformers %s has no %s; %s", whose, in.Name, what, next)}
}

// byRelease is the graph of a config alone by its release: the reader's, else the table's.
func byRelease(reader *modelgraph.Graph, cfg *config, fault error, name, source string) (graph *modelgraph.Graph, err error) {
	in := cfg.release()
	switch {
	case explains(in, cfg, fault):
		cfg.shared.fault = nil // it is the reader's
	case unknown(fault) == "":
		return reader, fault
	default:
		return nil, cmp.Or(lackingFrom(in, cfg), fault)
	}
	tree, class, err := treeOfTable(in, cfg)
	if err != nil && in.At != tables.Newest.At && isReviewed(tables.Newest, cfg) {
		in = tables.Newest.Alone()
		tree, class, err = treeOfTable(in, cfg)
	}
	if tree != nil && tree.Noted != nil {
		return nil, tree.Noted
	}
	if err == nil {
		graph, err = checkedGraph(in, cfg, tree, class, name, source)
	}
	if err != nil {
		return nil, cmp.Or(lackingFrom(in, cfg), err)
	}
	cfg.shared.linear = tables.Linears(tree, class)
	if cfg.has("quantization_config") && cfg.shared.linear == nil && !tree.Reviewed { // reviewed operations show it
		return nil, &tables.Error{File: cfg.file, Field: "quantization_config", Text: fmt.Sprintf("the table of Transformers %s does not say which weights of a %q are linear layers, which quantization stores otherwise", in.Name, clipName(cfg.name("model_type")))}
	}
	graph.Warnings = append(graph.Warnings, releaseNotes(in, cfg, tree, class.Class)...)
	return graph, nil
}

// checkedGraph is [graphOfTable]. Values with which a reviewed class cannot run are a fault of the config.
func checkedGraph(in *tables.Release, cfg *config, tree *tables.Tree, class *tables.Class, name, source string) (*modelgraph.Graph, error) {
	graph, err := graphOfTable(in, cfg, tree, class, name, source)
	if err == nil && tree.Reviewed {
		cfg.runnable(graph)
		err = cfg.fault()
	}
	return graph, err
}

// releaseNotes say how other releases read a config.
func releaseNotes(in *tables.Release, cfg *config, tree *tables.Tree, class string) (notes []string) {
	if said := cfg.shared.in; said.At != in.At && said.ConfigOf(cfg.name("model_type")) != "" {
		notes = append(notes, fmt.Sprintf("transformers_version: the table of Transformers %s lacks the class %s: it is read by that of %s, which may build other tensors", said.Name, class, in.Name))
	}
	if !cfg.shared.asked {
		notes = append(notes, otherReleases(in, cfg, tree, class), newerNote(cfg))
	}
	notes = append(notes, tables.TimmNote(tree)) // --transformers does not choose timm
	return slices.DeleteFunc(notes, func(note string) bool { return note == "" })
}

// otherReleases describes in one line how other releases read the config differently.
func otherReleases(in *tables.Release, cfg *config, tree *tables.Tree, class string) string {
	return in.Compared(tree, cfg.name("model_type"), func(other *tables.Release) (*tables.Tree, error) {
		made, _, err := treeOfClass(other, cfg, []string{class})
		return made, err
	})
}
