package planner

import (
	"reflect"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// repeats is a model with two of equal units in a row, for bounds of many forms. Each of
// its units stands for as many as times says.
type repeats struct {
	graph *modelgraph.Graph
	times []float64
}

// whole is a model of which nothing is left out.
func whole(graph *modelgraph.Graph) *repeats {
	return &repeats{graph, slices.Repeat([]float64{1}, len(graph.Units))}
}

// shortened leaves out units that equal the two before them. What reads a layer of these
// reads the same layer of the last unit that is kept.
func shortened(graph *modelgraph.Graph) *repeats {
	out, layers, replaced := &repeats{}, []modelgraph.Layer(nil), make(map[string]string)
	for index := range graph.Units {
		of := graph.Layers[graph.Units[index].First:graph.Units[index].End]
		if index > 1 && equalUnits(graph, index, index-1) && equalUnits(graph, index, index-2) {
			for i, kept := range layers[len(layers)-len(of):] {
				replaced[of[i].Name] = kept.Name
			}
			out.times[len(out.times)-1]++
			continue
		}
		out.times, layers = append(out.times, 1), append(layers, of...)
	}
	for i := range layers {
		inputs := slices.Clone(layers[i].Inputs)
		for j, name := range inputs {
			if kept, ok := replaced[name]; ok {
				inputs[j] = kept
			}
		}
		layers[i].Inputs = inputs
	}
	short, err := modelgraph.New(graph.Name, layers, graph.Ties)
	if err != nil || len(short.Units) != len(out.times) {
		return whole(graph)
	}
	short.Source, short.Family, short.Class, short.Config, short.DType, short.Quantized = graph.Source, graph.Family, graph.Class, graph.Config, graph.DType, graph.Quantized
	short.MaxSeq, short.Taken, short.Transformers = graph.MaxSeq, graph.Taken, graph.Transformers
	out.graph = short
	return out
}

// equalUnits reports units whose layers differ in names alone.
func equalUnits(graph *modelgraph.Graph, one, other int) bool {
	nameless := func(layer modelgraph.Layer) modelgraph.Layer { //nolint:gocritic // a copy is wanted
		layer.Name, layer.Unit, layer.Inputs, layer.InputLayers, layer.UnitIndex = "", "", nil, nil, 0
		layer.Params = slices.Clone(layer.Params)
		for i := range layer.Params {
			layer.Params[i].Parts = nil
		}
		return layer
	}
	a, b := &graph.Units[one], &graph.Units[other]
	return slices.EqualFunc(graph.Layers[a.First:a.End], graph.Layers[b.First:b.End], func(a, b modelgraph.Layer) bool {
		return reflect.DeepEqual(nameless(a), nameless(b))
	})
}
