package hf

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// release is that by whose table a config is read: one that the config names
// counts if it has the type.
func (cfg *config) release() *release {
	in := cfg.shared.in
	if !cfg.shared.asked && in.at < newest.at && in.configOf(cfg.name("model_type")) == "" {
		return newest.alone()
	}
	return in
}

// since reports a release from a version on.
func (cfg *fieldSet) since(version string) bool { return !newer(version, cfg.shared.in.name) }

// newerNote says that a config is of a release that no table is of.
func newerNote(cfg *config) string {
	version := cfg.lenient("transformers_version")
	if !newer(version, newest.name) {
		return ""
	}
	return fmt.Sprintf("transformers_version: %q is newer than the newest table, of %s: a newer release may build other tensors; the folder with its safetensors files has them", clipName(version), newest.name)
}

// lacking says in which releases the type or the class of a config is, if not in this one.
func (in *release) lacking(cfg *config) error {
	kind, names := cfg.name("model_type"), cfg.strs("architectures")
	if cfg.fault() != nil || in.configOf(kind) != "" && len(names) == 0 {
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
	next := wayOut
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

// treeFacts are what a release makes of a config, as lines.
type treeFacts struct {
	names  []string // with shapes, sorted
	params int64
	others []string // ties, modules that are not split
}

func (tree *typeTree) facts() *treeFacts {
	facts := new(treeFacts)
	for i := range tree.tensors {
		t := &tree.tensors[i]
		switch owner := tree.ties[t.name]; {
		case t.buffer:
		case owner != "":
			facts.others = append(facts.others, t.name+" = "+owner)
		default:
			facts.names = append(facts.names, fmt.Sprintf("%s %v", t.name, t.shape))
			facts.params += elements(t.shape)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tree.units)) {
		if class := tree.units[name]; class == "" || slices.Contains(tree.noSplit, class) {
			facts.others = append(facts.others, name)
		}
	}
	slices.Sort(facts.names)
	slices.Sort(facts.others)
	return facts
}

// compared says in one line what other releases make of the config, if it is
// something else.
func (in *release) compared(cfg *config, tree *typeTree) string {
	facts, done := tree.facts(), *in.span
	said := make(map[string][]string)
	var order []string
	for _, r := range releases {
		if done>>r.at&1 == 1 {
			continue
		}
		other, what := r.alone(), ""
		made, _, err := other.treeOf(cfg)
		span := *other.span
		switch {
		case err != nil && other.lacking(cfg) != nil:
			what, span = "lack the type or the class", 1<<r.at
		case err != nil: // its table does not say
			continue
		default:
			what = facts.unlike(made.facts())
		}
		for _, same := range releases {
			if span>>same.at&1 == 1 && done>>same.at&1 == 0 {
				done |= 1 << same.at
				if what != "" {
					if said[what] == nil {
						order = append(order, what)
					}
					said[what] = append(said[what], same.name)
				}
			}
		}
	}
	var parts []string
	for _, what := range order {
		parts = append(parts, strings.Join(said[what], ", ")+" "+what)
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("the answer is that of Transformers %s; releases %s (--transformers selects one)", in.name, strings.Join(parts, "; "))
}

// unlike says what another release makes of the same config, if not the same.
func (facts *treeFacts) unlike(other *treeFacts) string {
	switch {
	case facts.params != other.params:
		return fmt.Sprintf("make %d parameters, not %d", other.params, facts.params)
	case !slices.Equal(facts.names, other.names):
		for i := range other.names {
			if i >= len(facts.names) || other.names[i] != facts.names[i] {
				name, _, _ := strings.Cut(other.names[i], " ")
				return fmt.Sprintf("have other names of as many parameters (%q)", clipName(name))
			}
		}
		return "have fewer names of as many parameters"
	case !slices.Equal(facts.others, other.others):
		return "have other ties or modules that are not split"
	}
	return ""
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
	for _, note := range []string{in.compared(cfg, tree), newerNote(cfg)} {
		if note != "" && !cfg.shared.asked {
			graph.Warnings = append(graph.Warnings, note)
		}
	}
	return graph, nil
}
