package hf

import (
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// layers makes a layer for each module with tensors, in module order. Outside a unit, each tensor
// of a module with submodules is a layer. Units of a class without no-split modules are the members
// of its outermost lists.
func (l *listed) layers() []modelgraph.Layer {
	names := slices.SortedFunc(maps.Keys(l.tensors), l.pats.Compare)
	unit := l.unitOf
	if len(l.split) == 0 {
		checkpoint := &safetensors.Checkpoint{Tensors: make([]safetensors.Tensor, len(names))}
		for i, name := range names {
			checkpoint.Tensors[i].Name = name
		}
		lists := paths.NewTree(checkpoint)
		unit = func(name string) string { return lists.Unit(paths.Parent(name)) }
		l.warnings = append(l.warnings, "Transformers does not say which modules of "+l.class.Class+" must not be split: those of its outermost lists are kept whole")
	}
	at := make(map[string]int)
	var layers []modelgraph.Layer
	for _, name := range names {
		tensor, u := l.tensors[name], unit(name)
		module := paths.Parent(name)
		if u == "" && (module == "" || l.hasModules(module)) {
			module = name
		}
		if u != "" && !strings.HasPrefix(name, u+".") {
			module = u
		}
		i, ok := at[module]
		if !ok {
			i = len(layers)
			at[module] = i
			layers = append(layers, modelgraph.Layer{Name: module, Op: modelgraph.Opaque{}, Unit: u})
		}
		if !tensor.present() {
			continue
		}
		t := l.tensor(tensor, strings.TrimPrefix(strings.TrimPrefix(name, module), "."))
		if persistent, buffer := l.class.Buffers[l.pats.Match(name)]; buffer {
			t.Persistent = persistent
			layers[i].Buffers = append(layers[i].Buffers, t)
		} else {
			layers[i].Params = append(layers[i].Params, t)
		}
	}
	return paths.InOrder(layers)
}

// present reports a tensor that is stored or tied to a stored one. Buffers need only a key.
func (tensor *moduleTensor) present() bool { return len(tensor.pieces) > 0 || tensor.like != nil }

// tensor is the loaded form of a stored or tied tensor. Joined tensors make a flat list of their
// elements, of the widest type.
func (l *listed) tensor(tensor *moduleTensor, name string) modelgraph.Tensor {
	from := tensor
	if tensor.like != nil {
		from = tensor.like
	}
	first := from.pieces[0]
	t := modelgraph.Tensor{Name: name, Shape: slices.Clone(first.Shape), DType: first.DType}
	var total int64
	for _, p := range from.pieces {
		t.Parts = append(t.Parts, paths.Part(l.ck, p))
		total += tables.Elements(p.Shape)
		if p.DType.Bits() > t.DType.Bits() {
			t.DType = p.DType
		}
	}
	if len(from.pieces) > 1 {
		t.Shape = []int64{total}
	}
	return t
}
