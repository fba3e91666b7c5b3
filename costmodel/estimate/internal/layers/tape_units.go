package layers

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
)

// applyTape sets units to the tape of the step, if the model has one that ran as the workload does.
func applyTape(model *Model, units []costmodel.Unit) {
	if tape := tapeOf(model); tape != nil {
		all := make([]int, len(units))
		for u := range units {
			all[u] = u
		}
		tape.apply(model, units, all, units, false)
	}
}

// still are the bytes of a layer's parameters that the step that ran gave no gradient.
func still(layer *Layer) (bytes int64) {
	for k := range layer.Params {
		if tensor := &layer.Params[k]; tensor.Frozen && tensor.Owner == "" {
			bytes += tensor.Bytes
		}
	}
	return bytes
}

// TapePart is a table's Part of [Units] with a tape, and the model's outputs and the caller's loss in
// it; nil without one.
func TapePart(model *Model, units []costmodel.Unit) (part func(owned []int, copies bool) []costmodel.Unit, returned, loss int64) {
	tape := tapeOf(model)
	if tape == nil {
		return nil, 0, 0
	}
	return func(owned []int, copies bool) []costmodel.Unit {
		out := make([]costmodel.Unit, len(owned))
		for at, u := range owned {
			out[at] = units[u]
			out[at].Layers = slices.Clone(units[u].Layers)
		}
		tape.apply(model, units, owned, out, copies)
		if len(owned) < len(units) {
			ownRests(model, owned, out)
		}
		return out
	}, tape.returned, tape.loss
}

// ownRests sets the padding of units on a GPU of their own. Its allocator cuts blocks for their
// parameters and then for the optimizer's states (CUDACachingAllocator.cpp, should_split), with
// activations' cached blocks ignored.
func ownRests(model *Model, owned []int, units []costmodel.Unit) {
	cache := allocator.NewCache()
	for states := range 2 {
		for at, u := range owned {
			unit, before, copies, trained := &units[at], cache.Rests, int64(1), units[at].Params
			for _, i := range model.Unit(u) {
				trained -= still(&model.Layers[i])
			}
			if states == 1 {
				copies = unit.OptimizerState / max(1, trained)
			}
			for _, i := range model.Unit(u) {
				for _, tensor := range model.Layers[i].Params {
					for n := copies; n > 0 && tensor.Owner == "" && (states == 0 || !tensor.Frozen); n-- {
						cache.Alloc(0, tensor.Bytes)
					}
				}
			}
			unit.Padding = int64(states)*unit.Padding + cache.Rests - before
		}
	}
}

// unitsByLayer returns the index of each layer's unit, by the layer's name.
func unitsByLayer(model *Model) map[string]int {
	units := make(map[string]int, len(model.Layers))
	for i := range model.Layers {
		units[model.Layers[i].Name] = model.Layers[i].UnitIndex
	}
	return units
}

// sumByUnit adds up the bytes of layers by their units. Unknown layers are left out.
func sumByUnit[sized any](units map[string]int, of map[string]sized, bytes func(sized) int64) []ofUnit {
	out := make([]ofUnit, 0, len(of))
	for layer, some := range of {
		unit, ok := units[layer]
		if !ok {
			continue
		}
		at := slices.IndexFunc(out, func(one ofUnit) bool { return one.unit == unit })
		if at < 0 {
			at, out = len(out), append(out, ofUnit{unit: unit})
		}
		out[at].bytes += bytes(some)
	}
	return out
}
