// Package layers is a model under a resolved workload as an engine runs it: of
// every layer the tensors that one GPU stores, what its op costs, and the
// gradients that its backward makes.
package layers

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/optimizer"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Model is a graph under a workload.
type Model struct {
	Graph    *modelgraph.Graph
	Workload costmodel.Workload
	Rules    Rules
	// Layers are the graph's, by index.
	Layers []Layer

	Train bool
	// Frozen: the base takes no gradient, its adapters alone do.
	Frozen bool
	// Recomputes: blocks run again in backward.
	Recomputes bool
	// Optimizer updates what is trained.
	Optimizer optimizer.Rule
}

// Layer is one layer of the model.
type Layer struct {
	*modelgraph.Layer
	// Runs: it sees a token, so that it gets gradients.
	Runs bool
	// Whole are all of its parameters, Held those that one GPU stores.
	Whole, Held Part
	Grads       Gradient
	// Shape and Cost are empty where nothing runs ([costmodel.Load]).
	Shape ops.Shape
	Cost  ops.Cost
}

// New works out every layer. Sizes that would overflow are a
// [*costmodel.FieldError].
func New(graph *modelgraph.Graph, workload costmodel.Workload, rules Rules) (*Model, error) {
	if rules.Untied {
		graph = untied(graph)
	}
	model := &Model{
		Graph: graph, Workload: workload, Rules: rules, Layers: make([]Layer, len(graph.Layers)),
		Train: workload.Mode == costmodel.Train, Frozen: workload.LoRARank > 0,
		Recomputes: workload.Recompute == costmodel.RecomputeFull || workload.Recompute == costmodel.RecomputeSelective,
		Optimizer:  optimizer.Rule{Kind: workload.Optimizer, EMA: workload.EMA},
	}
	if rules.Masters {
		model.Optimizer.Average = rules.Compute.WeightBytes()
	}
	for i := range model.Layers {
		layer := &model.Layers[i]
		layer.Layer = &graph.Layers[i]
		tokens, _ := workload.Tokens(layer.Stream)
		layer.Runs = tokens > 0
		model.parts(i)
	}
	if model.Train {
		model.gradients()
	}
	if workload.Mode == costmodel.Load {
		return model, nil // bounded by modelgraph.New
	}
	model.shapes()
	if err := model.bound(); err != nil {
		return nil, err
	}
	for i := range model.Layers {
		model.Layers[i].cost()
	}
	model.holdMasks()
	return model, nil
}

// Unit are the layers of a unit in the order they run.
func (model *Model) Unit(index int) []int { return model.Graph.Units[index].Exec }

// Reads is the layer outside a unit whose output enters it, or -1.
func (model *Model) Reads(index int) int {
	unit := &model.Graph.Units[index]
	for _, i := range unit.Exec {
		for _, j := range model.Layers[i].InputLayers() {
			if j < unit.First || j >= unit.End {
				return j
			}
		}
	}
	return -1
}

// untied is the graph where every user of a tied parameter has a copy of its
// own, with its own gradient and states.
func untied(graph *modelgraph.Graph) *modelgraph.Graph {
	out := *graph
	out.Layers = slices.Clone(graph.Layers)
	for i := range out.Layers {
		layer := &out.Layers[i]
		layer.Params = slices.Clone(layer.Params)
		for j := range layer.Params {
			layer.Params[j].Owner = ""
		}
	}
	return &out
}

// embedding is the layer that embeds the text's tokens, or -1.
func embedding(graph *modelgraph.Graph) int {
	return slices.IndexFunc(graph.Layers, func(layer modelgraph.Layer) bool {
		_, ok := layer.Op.(modelgraph.Embedding)
		return ok && layer.Stream.Kind == modelgraph.Text
	})
}
