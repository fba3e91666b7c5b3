package layers

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// tileBlock reports a block of mllama's vision tower.
func tileBlock(graph *modelgraph.Graph, unit int) bool {
	of := &graph.Units[unit]
	return graph.Family == "mllama" && graph.Layers[of.First].Stream.Kind == modelgraph.Image && of.End-of.First > 1
}

// holdStates adds what mllama's tower holds in forward in addition to its blocks: the mask of
// the tiles, the output of every block until the tower ends, and there, once more,
// those that its features are made of, stacked and then side by side
// (MllamaVisionEncoder.forward, encoder_states; MllamaVisionModel.forward). In
// training the outputs are among what autograd keeps.
func holdStates(model *Model, units []costmodel.Unit) {
	if model.Graph.Family != "mllama" || model.Train {
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
			parts := features.In / width // the last state, and those that are stacked
			end := &last.Layers[len(last.Layers)-1]
			end.Forward = max(end.Forward, states+mask+(2*parts-1)*last.Output)
		}
	}
}
