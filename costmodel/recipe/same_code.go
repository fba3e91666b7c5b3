package recipe

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// sameCode is an earlier unit with the same code: the same steps of equal operations on parameters
// of the same names and shapes, none of them tied. It searches the last few kinds.
func (model *model) sameCode(all [][]step, index int) int {
	const kinds = 4
	for back := 1; back <= min(index, 8*kinds); back++ {
		if other := index - back; model.again[other] == model.again[index] && model.same(&model.graph.Units[other], &model.graph.Units[index]) && slices.EqualFunc(all[other], all[index], func(a, b step) bool {
			shift := model.graph.Units[index].First - model.graph.Units[other].First
			return a.kind == b.kind && a.core+shift == b.core && (a.pre < 0) == (b.pre < 0) && (a.post < 0) == (b.post < 0)
		}) {
			return other
		}
	}
	return -1
}

func (model *model) same(a, b *modelgraph.Unit) bool {
	if a.End-a.First != b.End-b.First {
		return false
	}
	for i := range a.End - a.First {
		if !sameLayer(&model.graph.Layers[a.First+i], &model.graph.Layers[b.First+i], len(a.Name), len(b.Name)) {
			return false
		}
	}
	return true
}

func sameLayer(a, b *modelgraph.Layer, cutA, cutB int) bool {
	if a.Op != b.Op || a.Stream != b.Stream || len(a.Params) != len(b.Params) || len(a.Name)-cutA != len(b.Name)-cutB || len(a.Name) < cutA || a.Name[cutA:] != b.Name[cutB:] {
		return false
	}
	for j := range a.Params {
		s, t := &a.Params[j], &b.Params[j]
		if s.Name != t.Name || s.DType != t.DType || s.Owner != "" || t.Owner != "" || !slices.Equal(s.Shape, t.Shape) {
			return false
		}
	}
	return true
}
