package hf

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// release is the release whose table reads a config. The config's own counts if its table has the
// class, or the newest's lacks it. A named release counts, unless the class is a reviewed one.
func (cfg *config) release() *release {
	in, kind, names := cfg.shared.in, cfg.name("model_type"), cfg.strs("architectures")
	if _, err := in.classOf(cfg.file, kind, names); err == nil || in.at == newest.at {
		return in
	}
	if _, err := newest.classOf(cfg.file, kind, names); err != nil || cfg.shared.asked && !cfg.reviewedIn(newest) {
		return in
	}
	return newest.alone()
}

// reviewedIn reports that the operations of a config's class are reviewed.
func (cfg *config) reviewedIn(in *release) bool {
	class, err := in.classOf(cfg.file, cfg.name("model_type"), cfg.strs("architectures"))
	return err == nil && class.reviewed() != nil
}

// lacking names the releases with the config's type or class, if this one has none.
func (cfg *config) lackedBy(in *release) error {
	kind, names := cfg.name("model_type"), cfg.strs("architectures")
	if in.configOf(kind) != "" && len(names) == 0 {
		return nil
	}
	whose, field, what := "", "model_type", fmt.Sprintf("type %q", clipName(kind))
	has := func(r *release) bool { return r.configOf(kind) != "" }
	if has(in) {
		whose, field, what = "the table of ", "architectures[0]", fmt.Sprintf("class %q", clipName(names[0]))
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
	return &modelgraph.SyntaxError{File: cfg.file, Place: field, Msg: fmt.Sprintf("%sTransformers %s has no %s; %s", whose, in.name, what, next)}
}

// byRelease is the graph of a config alone by its release: the reader's, else the table's.
func byRelease(reader *modelgraph.Graph, cfg *config, fault error, name, source string) (graph *modelgraph.Graph, err error) {
	in := cfg.release()
	switch {
	case cfg.explains(in, fault):
		cfg.shared.fault = nil // it is the reader's
	case unknown(fault) == "":
		return reader, fault
	default:
		return nil, cmp.Or(cfg.lackedBy(in), fault)
	}
	tree, class, err := cfg.treeOf(in)
	if err != nil && in.at != newest.at && cfg.reviewedIn(newest) {
		in = newest.alone()
		tree, class, err = cfg.treeOf(in)
	}
	if tree != nil && tree.noted != nil {
		return nil, tree.noted
	}
	if err == nil {
		graph, err = cfg.tableGraph(in, tree, class, name, source)
	}
	if err != nil {
		return nil, cmp.Or(cfg.lackedBy(in), err)
	}
	cfg.shared.linear = tree.linears(class)
	if cfg.has("quantization_config") && cfg.shared.linear == nil && !tree.reviewed { // reviewed operations show it
		return nil, &typeError{File: cfg.file, Field: "quantization_config", Text: fmt.Sprintf("the table of Transformers %s does not say which weights of a %q are linear layers, which quantization stores otherwise", in.name, clipName(cfg.name("model_type")))}
	}
	graph.Warnings = append(graph.Warnings, cfg.releaseNotes(in, tree, class.Class)...)
	return graph, nil
}

// notes say how other releases read a config.
func (cfg *config) releaseNotes(in *release, tree *typeTree, class string) (notes []string) {
	if said := cfg.shared.in; said.at != in.at && said.configOf(cfg.name("model_type")) != "" {
		notes = append(notes, fmt.Sprintf("transformers_version: the table of Transformers %s lacks the class %s: it is read by that of %s, which may build other tensors", said.name, class, in.name))
	}
	if !cfg.shared.asked {
		notes = append(notes, cfg.otherReleases(in, tree, class), newerNote(cfg))
	}
	notes = append(notes, timmNote(tree)) // --transformers does not choose timm
	return slices.DeleteFunc(notes, func(note string) bool { return note == "" })
}

// otherReleases describes in one line how other releases read the config differently.
func (cfg *config) otherReleases(in *release, tree *typeTree, class string) string {
	return in.compared(tree, cfg.name("model_type"), func(other *release) (*typeTree, error) {
		made, _, err := cfg.treeAs(other, []string{class})
		return made, err
	})
}
