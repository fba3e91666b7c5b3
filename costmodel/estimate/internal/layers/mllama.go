package layers

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// tileBlock reports a block of mllama's vision tower.
func tileBlock(graph *modelgraph.Graph, unit int) bool {
	of := &graph.Units[unit]
	return graph.Family == "mllama" && graph.Layers[of.First].Stream.Kind == modelgraph.Image && of.End-of.First > 1
}

// holdStates adds mllama's tower memory in forward beyond its blocks (MllamaVisionModel.forward,
// MllamaVisionEncoder.forward, encoder_states). It keeps the tiles' mask and every block's output
// until the tower ends. Its features are a further copy, stacked and then joined. Autograd keeps
// the outputs in training.
func holdStates(model *Model, units []costmodel.Unit) {
	if model.Graph.Family != "mllama" {
		return
	}
	if model.Train {
		trainTiles(model, units)
		return
	}
	var states, mask, width int64
	var last *costmodel.Unit
	for index := range units {
		first := &model.Layers[model.Graph.Units[index].First]
		if !tileBlock(model.Graph, index) || !first.Runs || len(units[index].Layers) == 0 {
			continue
		}
		last, mask = &units[index], 2*first.Shape.Tokens*first.Stream.Tokens
		width = last.Output / max(1, 2*first.Shape.Tokens)
		for k := range last.Layers {
			last.Layers[k].Forward += states + mask
		}
		states += last.Output
	}
	for i := range model.Graph.Layers {
		if features, ok := model.Graph.Layers[i].Op.(modelgraph.Linear); ok && last != nil && features.In > width && width > 0 {
			parts := features.In / width // the last state, and the stacked ones
			end := &last.Layers[len(last.Layers)-1]
			end.Forward = max(end.Forward, states+mask+(2*parts-1)*last.Output)
		}
	}
}

// trainTiles adds what autograd keeps of mllama's tower beyond its blocks. Every block reads one
// mask of the tiles. The global blocks multiply both results by gates, and keep these
// (MllamaVisionEncoderLayer.forward, is_gated). The projector's backward runs after the language
// model's gradients exist; it holds the joined features, their gradient and its output's.
func trainTiles(model *Model, units []costmodel.Unit) {
	var first, last *costmodel.Unit
	var mask int64
	for index := range units {
		unit := &units[index]
		at := &model.Layers[model.Graph.Units[index].First]
		if !tileBlock(model.Graph, index) || !at.Runs || len(unit.Layers) == 0 {
			continue
		}
		if last = unit; first == nil {
			first, mask = unit, ops.ComputeBytes(model.Rules.Compute)*at.Shape.Tokens*at.Stream.Tokens
		}
		for k, i := range model.Unit(index) {
			body := &unit.Layers[min(k+1, len(unit.Layers)-1)] // the gates come first
			if _, gate := model.Layers[i].Op.(modelgraph.Parameter); gate && !model.Frozen {
				body.Saved, body.Forward = body.Saved+unit.Output, body.Forward+unit.Output
			}
		}
	}
	if first == nil {
		return
	}
	first.Layers[0].Saved, first.Layers[0].Forward = first.Layers[0].Saved+mask, first.Layers[0].Forward+mask
	for i := range model.Layers {
		layer := &model.Layers[i]
		if _, projects := layer.Op.(modelgraph.Linear); !projects || layer.Stream.Kind != modelgraph.Image || tileBlock(model.Graph, layer.UnitIndex) {
			continue
		}
		end := &last.Layers[len(last.Layers)-1]
		if most := 2*layer.Cost.Memory.Saved + layer.Cost.Output; most > end.Backward {
			end.Backward, end.BackwardGrads = most, 0
		}
	}
}
