package shard

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Root is the name of the group of everything outside the blocks. In FSDP2
// its module is the model itself, whose path is empty.
const Root = "root"

// Group is the units whose parameters are gathered and reduced together.
type Group struct {
	Name  string
	Units []int // in unit order
	Root  bool
}

// Groups are FSDP2's parameter groups where fully_shard is applied to every
// block and then to the model: each block is one, the rest is the root's,
// which comes first since its forward starts first. A group without
// parameters is left out.
func Groups(graph *modelgraph.Graph) []Group {
	out := []Group{{Name: Root, Root: true}}
	for unit := range graph.Units {
		switch {
		case isBlock(graph, unit):
			out = append(out, Group{Name: graph.Units[unit].Name, Units: []int{unit}})
		default:
			out[0].Units = append(out[0].Units, unit)
		}
	}
	retained := out[:0]
	for i := range out {
		if owns(graph, out[i].Units) {
			retained = append(retained, out[i])
		}
	}
	return retained
}

// isBlock reports a block of a stack: an entry of a module list (h.0,
// model.layers.3) that is more than one op. A single layer in a list, such as
// a projector's mlp.2, is part of a torch.nn.Sequential.
func isBlock(graph *modelgraph.Graph, index int) bool {
	unit := &graph.Units[index]
	last := unit.Name[strings.LastIndexByte(unit.Name, '.')+1:]
	if last == "" || strings.Trim(last, "0123456789") != "" {
		return false
	}
	_, opaque := graph.Layers[unit.First].Op.(modelgraph.Opaque)
	return unit.End-unit.First > 1 || opaque || graph.Layers[unit.First].Declared != nil
}

// owns reports whether any of the units has a parameter of its own.
func owns(graph *modelgraph.Graph, units []int) bool {
	for _, unit := range units {
		for i := graph.Units[unit].First; i < graph.Units[unit].End; i++ {
			layer := &graph.Layers[i]
			if layer.Declared != nil && layer.Declared.ParamsBytes > 0 {
				return true
			}
			if slices.ContainsFunc(layer.Params, func(tensor modelgraph.Tensor) bool { return tensor.Owner == "" }) {
				return true
			}
		}
	}
	return false
}
