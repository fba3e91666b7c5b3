// Package layers is a model under a resolved workload as an engine runs it: each layer's tensors on
// one GPU, its op's costs, and its gradients.
package layers

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Model is a graph under a workload.
type Model struct {
	// Graph is the layers' graph; Tied is the given one, before [Rules.Untied] copied tied parameters.
	Graph, Tied *modelgraph.Graph

	Workload costmodel.Workload
	Rules    Rules
	// Layers are the graph's, by index.
	Layers []Layer

	Train bool
	// Frozen: the base takes no gradient, its adapters alone do.
	Frozen bool
	// Recomputes: blocks run again in backward, all or a list of them.
	Recomputes bool
	again      []bool // by unit
	// Optimizer updates the trained parameters.
	Optimizer Optimizer

	follow func() ([2]int64, bool)
}

// Layer is one layer of the model.
type Layer struct {
	*modelgraph.Layer
	// Runs: it sees a token, so that it gets gradients.
	Runs bool
	// Whole are all of its parameters, Shard those on one GPU.
	Whole, Shard Part
	Grads        Gradient
	// Shape and Cost are empty if nothing runs ([costmodel.Load]).
	Shape ops.Shape
	Cost  ops.Cost
}

// Part is the part of a layer's parameters on one GPU: all of them, or a shard of each.
type Part struct {
	*modelgraph.Layer
	// Adapters are the layer's, whole.
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

// Shape is the tensor's shape.
func (matrix Matrix) Shape() []int64 { return []int64{matrix.Rows, matrix.Columns} }

// Gradient is a layer's new gradients: First ones, and Second ones for parameters that a later
// layer gave one. Waits are those in autograd's buffer before AccumulateGrad that wait for a tied
// parameter's others; negative at the last of these, which frees them.
type Gradient struct{ First, Second, Waits int64 }

// Unit are the layers of a unit in the order they run.
func (model *Model) Unit(index int) []int { return model.Graph.Units[index].Exec }

// Reads is the outside layer whose output enters a unit, or -1.
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
