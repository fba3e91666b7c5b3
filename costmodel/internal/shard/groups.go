package shard

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Root is the group of everything outside the blocks; FSDP2's module for it is the model itself.
const Root = "root"

// Group is the units whose parameters are gathered and reduced together.
type Group struct {
	Name  string
	Units []int // in unit order
	Root  bool
	Tail  bool // the head's, which stays gathered from forward to backward
	Alone bool // the head's, which reshards
}

// Groups are FSDP2's parameter groups after fully_shard on every block and then on the model: one
// for each block, and the root's, which comes first as its forward starts first. It leaves out
// empty groups. own may give the embedding and the head groups.
func Groups(graph *modelgraph.Graph, own Ends) []Group {
	out := []Group{{Name: Root, Root: true}}
	if own.Whole {
		for unit := range graph.Units {
			out[0].Units = append(out[0].Units, unit)
		}
		return out
	}
	ends := own.groups(graph)
	for unit := range graph.Units {
		at := slices.IndexFunc(ends, func(group Group) bool { return slices.Contains(group.Units, unit) })
		switch {
		case at >= 0 && ends[at].Units[0] == unit:
			out = append(out, ends[at])
		case at >= 0:
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

// Ends says which groups the ends of a model form.
type Ends struct {
	// Own: the embedding is a group, and the head is one with its tied parameters (accelerate 1.15,
	// utils/fsdp_utils.py, fsdp2_prepare_model).
	Own bool
	// Norm: the final norm is in the head's group. Under PEFT's wrapper
	// _find_final_norm there finds none, and the norm is the root's.
	Norm bool
	// Whole: the model is one group, the root's.
	Whole bool
	// Alone: only untied ends are groups, and the head's reshards (torchtune).
	Alone bool
}

// EndsOf are the ends under a workload's preset.
func EndsOf(workload *costmodel.Workload) Ends {
	path := &trainer.Of(workload.Preset).Path
	if path.OwnEnds {
		return Ends{Own: workload.LoRARank == 0, Alone: true}
	}
	adapted := workload.LoRARank > 0
	return Ends{Own: path.Ends, Norm: !adapted, Whole: path.Whole || path.AdaptersOneGroup && adapted}
}

// groups are the groups of the ends.
func (own Ends) groups(graph *modelgraph.Graph) []Group {
	if !own.Own {
		return nil
	}
	var first, tail Group
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		unit := layer.UnitIndex
		switch op := layer.Op.(type) {
		case modelgraph.Embedding:
			if first.Name == "" && layer.Stream.Kind == modelgraph.Text && !isBlock(graph, unit) {
				first = Group{Name: graph.Units[unit].Name, Units: []int{unit}}
			}
		case modelgraph.Norm:
			if own.Norm && isBaseChild(graph, layer) {
				tail.Units = append(tail.Units, unit)
			}
		case modelgraph.Head:
			if !op.Pooled {
				tail = Group{Name: layer.Name, Units: append(tail.Units, unit), Tail: !own.Alone, Alone: own.Alone}
			}
		}
	}
	switch tied := tiedHead(graph); {
	case tied && own.Alone:
		return nil
	case tied:
		tail.Units, first = slices.Concat(first.Units, tail.Units), Group{}
	}
	return slices.DeleteFunc([]Group{first, tail}, func(group Group) bool { return group.Name == "" })
}

// isBaseChild reports a child of the base model outside its blocks: model.norm.
func isBaseChild(graph *modelgraph.Graph, layer *modelgraph.Layer) bool {
	return strings.Count(layer.Name, ".") == 1 && !isBlock(graph, layer.UnitIndex)
}

// tiedHead reports a head with another layer's weight.
func tiedHead(graph *modelgraph.Graph) bool {
	return slices.ContainsFunc(graph.Layers, func(layer modelgraph.Layer) bool {
		head, ok := layer.Op.(modelgraph.Head)
		return ok && !head.Pooled && slices.ContainsFunc(layer.Params, func(tensor modelgraph.Tensor) bool { return tensor.Owner != "" })
	})
}

// isBlock reports a block of a stack: an entry of a module list (h.0, model.layers.3) with more than one
// op. A single layer in a list, such as a projector's mlp.2, is part of a torch.nn.Sequential.
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
