// Package layers is a model under a resolved workload as an engine runs it: of every layer the
// tensors that one GPU stores, what its op costs, and the gradients that its backward makes.
package layers

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Model is a graph under a workload.
type Model struct {
	// Graph is what the layers are of; Tied is the graph as it was given, before
	// [Rules.Untied] gave every user of a tied parameter a copy.
	Graph, Tied *modelgraph.Graph

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
	Optimizer Optimizer

	follow func() ([2]int64, bool)
}

// Layer is one layer of the model.
type Layer struct {
	*modelgraph.Layer
	// Runs: it sees a token, so that it gets gradients.
	Runs bool
	// Whole are all of its parameters, Shard those that one GPU stores.
	Whole, Shard Part
	Grads        Gradient
	// Shape and Cost are empty if nothing runs ([costmodel.Load]).
	Shape ops.Shape
	Cost  ops.Cost
}

// Part is what of a layer's parameters one GPU stores: all of them, or its part of each.
type Part struct {
	*modelgraph.Layer
	// Adapters are those of the layer, whole.
	Adapters []ops.Adapter

	degree int64         // over how many GPUs it is cut
	whole  []int64       // elements of each parameter, if it is cut
	linear []*Projection // by parameter: the linear layer it is the weight of
	model  *Model
}

// Matrix is one of an adapter's two, or one GPU's rows of it.
type Matrix struct{ Rows, Columns int64 }

// Numel is the number of elements.
func (matrix Matrix) Numel() int64 { return matrix.Rows * matrix.Columns }

// Shape is that of the tensor.
func (matrix Matrix) Shape() []int64 { return []int64{matrix.Rows, matrix.Columns} }

// Gradient is what a layer's backward makes: First gradients, and Second ones
// for parameters that a later layer gave one already. Waits are those that
// wait, in the engine's buffer before AccumulateGrad, for a tied parameter's
// other gradients: negative where the last of these comes and they go.
type Gradient struct{ First, Second, Waits int64 }

// Unit are the layers of a unit in the order they run.
func (model *Model) Unit(index int) []int { return model.Graph.Units[index].Exec }

// Reads is the layer outside a unit whose output enters it, or -1.
func (model *Model) Reads(index int) int {
	unit := &model.Graph.Units[index]
	for _, i := range unit.Exec {
		for _, j := range model.Layers[i].InputLayers {
			if j < unit.First || j >= unit.End {
				return j
			}
		}
	}
	return -1
}

// embedding is the layer that embeds the text's tokens, or -1.
func embedding(graph *modelgraph.Graph) int {
	return slices.IndexFunc(graph.Layers, func(layer modelgraph.Layer) bool {
		_, ok := layer.Op.(modelgraph.Embedding)
		return ok && layer.Stream.Kind == modelgraph.Text
	})
}
