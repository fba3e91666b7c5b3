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
func Groups(g *modelgraph.Graph) []Group {
	out := []Group{{Name: Root, Root: true}}
	for u := range g.Units {
		switch {
		case isBlock(g, u):
			out = append(out, Group{Name: g.Units[u].Name, Units: []int{u}})
		default:
			out[0].Units = append(out[0].Units, u)
		}
	}
	kept := out[:0]
	for i := range out {
		if owns(g, out[i].Units) {
			kept = append(kept, out[i])
		}
	}
	return kept
}

// isBlock reports a block of a stack: an entry of a module list (h.0,
// model.layers.3) that is more than one op. A single layer in a list, such as
// a projector's mlp.2, is part of a torch.nn.Sequential.
func isBlock(g *modelgraph.Graph, u int) bool {
	unit := &g.Units[u]
	last := unit.Name[strings.LastIndexByte(unit.Name, '.')+1:]
	if last == "" || strings.Trim(last, "0123456789") != "" {
		return false
	}
	_, opaque := g.Layers[unit.First].Op.(modelgraph.Opaque)
	return unit.End-unit.First > 1 || opaque || g.Layers[unit.First].Declared != nil
}

// owns reports whether any of the units has a parameter of its own.
func owns(g *modelgraph.Graph, units []int) bool {
	for _, u := range units {
		for i := g.Units[u].First; i < g.Units[u].End; i++ {
			l := &g.Layers[i]
			if l.Declared != nil && l.Declared.ParamsBytes > 0 {
				return true
			}
			if slices.ContainsFunc(l.Params, func(tensor modelgraph.Tensor) bool { return !tensor.Tied() }) {
				return true
			}
		}
	}
	return false
}
