package hf

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// checked compares a reader's graph with the release's table, if the table has its class. The
// reader knows the operations; the table was derived from Transformers' code
// (docs/design/36-two-derivations.md). The types and the order of tensors are the table's. An error
// names the first parameter that differs.
func (cfg *config) checked(graph *modelgraph.Graph) (*modelgraph.Graph, error) {
	in, kind := cfg.shared.in, cfg.name("model_type")
	if graph.AutoClass == "" && (in.Makes(kind, graph.Class) || namedClassOf(graph.Class, kind) != nil) {
		graph.AutoClass = in.Loader(kind, graph.Class)
	}
	tree, class, err := treeOfClass(in, cfg, []string{graph.Class})
	taped, of := tree, class
	if tree == nil || class.Config != in.ConfigOf(kind) { // tapes need the class and its fields alone
		taped, of, _ = treeOfClass(tables.Newest.Alone(), cfg, []string{graph.Class})
	}
	if taped != nil {
		tables.AddTapes(in, taped, of, graph.Layers, true)
	}
	if err != nil || class.Config != in.ConfigOf(kind) {
		return graph, nil //nolint:nilerr // the table does not say
	}
	if drift := otherReleases(in, cfg, tree, graph.Class); drift != "" && !cfg.shared.asked {
		graph.Warnings = append(graph.Warnings, drift)
	}
	table := newTableTensors(tree.Layers(class, loaded(cfg), nil))
	out := slices.Clone(graph.Layers)
	for i := range out {
		table.retype(&out[i])
	}
	for name := range table.params {
		table.differ(name, "the rules have no such parameter")
	}
	table.compareTies(owners(graph.Ties), owners(tree.Tied()))
	if table.difference != "" {
		return graph, &tables.Error{File: cfg.file, Field: "model_type", Text: fmt.Sprintf("devmap's rules for a %s and the table of Transformers %s disagree about %q: %s", graph.Class, in.Name, table.difference, table.why)}
	}
	if !table.changed {
		return graph, nil
	}
	made, err := relaid(graph, out, graph.Ties)
	return cmp.Or(made, graph), err
}

// tableTensors are the tensors of a table by their full names.
type tableTensors struct {
	params, buffers map[string]*modelgraph.Tensor // params: not yet in a layer of the reader
	order           map[string]int
	difference, why string // the first tensor that the reader has otherwise
	changed         bool   // a layer has another type or order than the reader's
}

func newTableTensors(layers []modelgraph.Layer) *tableTensors {
	table := &tableTensors{params: make(map[string]*modelgraph.Tensor), buffers: make(map[string]*modelgraph.Tensor), order: make(map[string]int)}
	for i := range layers {
		for j := range layers[i].Params {
			name := modelgraph.FullName(layers[i].Name, layers[i].Params[j].Name)
			table.params[name], table.order[name] = &layers[i].Params[j], len(table.order)
		}
		for j := range layers[i].Buffers {
			table.buffers[modelgraph.FullName(layers[i].Name, layers[i].Buffers[j].Name)] = &layers[i].Buffers[j]
		}
	}
	return table
}

func (table *tableTensors) differ(name, why string) {
	if table.difference == "" || name < table.difference {
		table.difference, table.why = name, why
	}
}

// compareTies notes tensors that the reader and the table tie otherwise, each to its owner.
func (table *tableTensors) compareTies(reader, own map[string]string) {
	for name, owner := range own {
		if reader[name] != owner {
			table.differ(name, "only the table ties it to "+owner)
		}
	}
	for name, owner := range reader {
		if own[name] == "" {
			table.differ(name, "only the rules tie it to "+owner)
		}
	}
}

// retype gives a layer's tensors the table's types and order. Buffers of another size stay:
// settings of rotary embeddings, which few builds of the table had, change it.
func (table *tableTensors) retype(layer *modelgraph.Layer) {
	layer.Params, layer.Buffers = slices.Clone(layer.Params), slices.Clone(layer.Buffers)
	for j := range layer.Params {
		p := &layer.Params[j]
		name := modelgraph.FullName(layer.Name, p.Name)
		switch t := table.params[name]; {
		case t == nil:
			table.differ(name, "the table has no such parameter")
		case !slices.Equal(t.Shape, p.Shape):
			table.differ(name, fmt.Sprintf("%s or %s", tables.InJSON(p.Shape), tables.InJSON(t.Shape)))
		default:
			table.changed = table.changed || p.DType != t.DType
			p.DType = t.DType
		}
		delete(table.params, name)
	}
	place := func(p modelgraph.Tensor) int { return table.order[modelgraph.FullName(layer.Name, p.Name)] }
	byPlace := func(x, y modelgraph.Tensor) int { return place(x) - place(y) }
	if !slices.IsSortedFunc(layer.Params, byPlace) {
		slices.SortFunc(layer.Params, byPlace)
		table.changed = true
	}
	for j := range layer.Buffers {
		b := &layer.Buffers[j]
		if t := table.buffers[modelgraph.FullName(layer.Name, b.Name)]; t != nil && slices.Equal(t.Shape, b.Shape) {
			table.changed = table.changed || b.DType != t.DType || b.Persistent != t.Persistent
			b.DType, b.Persistent = t.DType, t.Persistent
		}
	}
}

// owners are the owners of tied names.
func owners(ties [][]string) map[string]string {
	of := make(map[string]string)
	for _, names := range ties {
		for _, name := range names[1:] {
			of[name] = names[0]
		}
	}
	return of
}
