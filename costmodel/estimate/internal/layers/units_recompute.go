package layers

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// keepSelected sets the bytes that selective recomputation keeps of a unit.
func keepSelected(model *Model, index int, out *costmodel.Unit) {
	if model.Workload.Recompute != value.RecomputeSelective || !out.Recompute {
		return
	}
	var selective ops.Selective
	for k, i := range model.Unit(index) {
		layer, step := &model.Layers[i], &out.Layers[k]
		if layer.Runs {
			step.RecomputeSaved = min(selective.Saved(layer.Op, &layer.Shape, biases(layer.Layer)), step.Forward)
		}
	}
}

// biases counts the linear layers of a layer that have one.
func biases(layer *modelgraph.Layer) int {
	count := 0
	for j := range layer.Params {
		below, bias := strings.CutSuffix(layer.Params[j].Name, "bias")
		if bias && !strings.Contains(below, "norm") && len(layer.Params[j].Shape) == 1 {
			count++
		}
	}
	return count
}

// Biased reports a product with a bias, and one in a unit that runs again in backward.
func Biased(model *Model, units []costmodel.Unit) (found, again bool) {
	for i := range model.Layers {
		if layer := &model.Layers[i]; layer.Runs && hasProjections(layer.Op) && biases(layer.Layer) > 0 {
			found, again = true, again || units[layer.UnitIndex].Recompute
		}
	}
	return found, again
}

// keepInputs keeps the inputs of 8-bit linear layers in a recomputed unit until the loss is
// dropped, in addition to recomputed ones. Earlier units' backward is no peak, and is not counted.
func keepInputs(model *Model, index int, out *costmodel.Unit) {
	if !out.Recompute {
		return
	}
	var all int64
	for k, i := range model.Unit(index) {
		if persisting := model.Layers[i].Cost.Persists; persisting > 0 {
			out.Layers[k].RecomputeSaved = persisting
			all += persisting
		}
	}
	for k := range out.Layers {
		step := &out.Layers[k]
		step.Forward, step.Backward, step.AccumPeak = step.Forward+all, step.Backward+all, step.AccumPeak+all
	}
}

// retainsInputs reports that a recomputed unit has such inputs.
func retainsInputs(model *Model, units []costmodel.Unit) bool {
	for unit := range units {
		for _, i := range model.Unit(unit) {
			if units[unit].Recompute && model.Layers[i].Cost.Persists > 0 {
				return true
			}
		}
	}
	return false
}

// looksUp reports a unit with a table of tokens: embeddings are no GradientCheckpointingLayer
// (modeling_bert.py, BertEmbeddings).
func (unit *adder) looksUp() bool {
	return slices.ContainsFunc(unit.Unit(unit.index), func(i int) bool {
		op, ok := unit.Layers[i].Op.(modelgraph.Embedding)
		return ok && op.Index == modelgraph.TokenIndex
	})
}

// earlierRuns adds what earlier runs of a repeated unit keep to its last run's backward, when the
// layers after it have released only that run.
func (unit *adder) earlierRuns() {
	var earlier int64
	exec := unit.Unit(unit.index)
	for k := len(unit.out.Layers) - 1; k >= 0; k-- {
		step, times := &unit.out.Layers[k], unit.Layers[exec[k]].Times()
		if step.Backward > 0 {
			step.Backward += earlier
		}
		if casts := unit.Layers[exec[k]].Cost.Casts; step.Saved > casts {
			earlier += (step.Saved - casts) / times * (times - 1)
		}
	}
}

// tableBefore is the table that a norm reads if the norm's module follows its readers
// (modeling_bart.py: layernorm_embedding), or -1.
func tableBefore(model *Model, i int) int {
	in := model.Layers[i].InputLayers
	if _, norm := model.Layers[i].Op.(modelgraph.Norm); !norm || len(in) != 1 || model.Layers[in[0]].UnitIndex >= model.Layers[i].UnitIndex {
		return -1
	}
	if _, table := model.Layers[in[0]].Op.(modelgraph.Embedding); !table || !slices.ContainsFunc(model.Layers, func(layer Layer) bool {
		return slices.Contains(layer.InputLayers, i) && layer.UnitIndex < model.Layers[i].UnitIndex
	}) {
		return -1
	}
	return in[0]
}
