package layers

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// RunOrder are the units in running order: each follows those that it reads. Module order may
// differ (modeling_camembert.py, CamembertForMaskedLM, lm_head first; modeling_opt.py, OPTDecoder,
// final_layer_norm).
func RunOrder(graph *modelgraph.Graph) []int {
	out, seen := make([]int, 0, len(graph.Units)), make([]bool, len(graph.Units))
	var visit func(unit int)
	visit = func(unit int) {
		if seen[unit] {
			return
		}
		seen[unit] = true
		for _, i := range graph.Units[unit].Exec {
			for _, j := range graph.Layers[i].InputLayers {
				visit(graph.Layers[j].UnitIndex)
			}
		}
		out = append(out, unit)
	}
	for unit := range graph.Units {
		visit(unit)
	}
	return out
}

// InOrder is a table's Part if units run in another order than the graph's, for one GPU with all units.
func InOrder(model *Model, units []costmodel.Unit) func(owned []int, copies bool) []costmodel.Unit {
	order := RunOrder(model.Graph)
	if slices.IsSorted(order) {
		return nil
	}
	return func(owned []int, _ bool) (out []costmodel.Unit) {
		for _, unit := range order {
			if slices.Contains(owned, unit) {
				out = append(out, units[unit])
			}
		}
		return out
	}
}
