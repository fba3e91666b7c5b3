package paths

import (
	"cmp"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// Tree is the module tree that tensor names spell.
type Tree struct {
	ck      *safetensors.Checkpoint
	Names   map[string]bool   // of tensors
	Parents map[string]bool   // modules with modules below them
	first   map[string]string // list to its first number
	lists   map[string]bool   // paths with two or more numbered children
}

// NewTree is the tree of the names in a checkpoint.
func NewTree(ck *safetensors.Checkpoint) *Tree {
	root := &Tree{
		ck: ck, Names: make(map[string]bool, len(ck.Tensors)),
		Parents: make(map[string]bool), first: make(map[string]string), lists: make(map[string]bool),
	}
	for i := range ck.Tensors {
		root.Names[ck.Tensors[i].Name] = true
	}
	seen := make(map[string]bool)
	for i := range ck.Tensors {
		module := Parent(root.base(ck.Tensors[i].Name))
		if module != "" && !seen[module] {
			seen[module] = true
			root.addModule(module)
		}
	}
	return root
}

func (root *Tree) addModule(path string) {
	for prefix := path; prefix != ""; prefix = Parent(prefix) {
		up, last := CutLast(prefix)
		root.Parents[up] = true
		if !Decimal(last) {
			continue
		}
		if number, ok := root.first[up]; !ok {
			root.first[up] = last
		} else if number != last {
			root.lists[up] = true
		}
	}
}

// base is the tensor that a name belongs to. Tables of quantised storage have names below the
// weight's (q.weight, q.weight.absmax).
func (root *Tree) base(name string) string {
	for i := range name {
		if name[i] == '.' && root.Names[name[:i]] {
			return name[:i]
		}
	}
	return name
}

// Unit is the member of the outermost numbered list on a module's path.
func (root *Tree) Unit(module string) string {
	for i := 0; i < len(module); {
		end := len(module)
		if count := strings.IndexByte(module[i:], '.'); count >= 0 {
			end = i + count
		}
		if Decimal(module[i:end]) && root.lists[module[:max(0, i-1)]] {
			return module[:end]
		}
		i = end + 1
	}
	return ""
}

// Layers makes a layer for each module with tensors. Outside a unit, each tensor of a module with
// children is a layer.
func (root *Tree) Layers() []modelgraph.Layer {
	at := make(map[string]int)
	var layers []modelgraph.Layer
	for i := range root.ck.Tensors {
		stored := &root.ck.Tensors[i]
		base := root.base(stored.Name)
		name := Parent(base)
		unit := root.Unit(name)
		if unit == "" && (name == "" || root.Parents[name]) {
			name = base
		}
		j, ok := at[name]
		if !ok {
			j = len(layers)
			at[name] = j
			layers = append(layers, modelgraph.Layer{Name: name, Op: modelgraph.Opaque{}, Unit: unit})
		}
		layers[j].Params = append(layers[j].Params, modelgraph.Tensor{
			Name:  strings.TrimPrefix(strings.TrimPrefix(stored.Name, name), "."),
			Shape: stored.Shape, DType: stored.DType, Parts: []modelgraph.Part{Part(root.ck, stored)},
		})
	}
	return InOrder(layers)
}

// InOrder sorts layers by first appearance, the units of a numbered list together and ascending.
func InOrder(layers []modelgraph.Layer) []modelgraph.Layer {
	type key struct {
		list   int // first appearance of the list, or of the lone layer
		number string
		layer  int
	}
	first := make(map[string]int)
	keys := make([]key, len(layers))
	for i := range layers {
		k := key{list: i, layer: i}
		if layers[i].Unit != "" {
			list, number := CutLast(layers[i].Unit)
			if _, ok := first[list]; !ok {
				first[list] = i
			}
			k.list, k.number = first[list], number
		}
		keys[i] = k
	}
	slices.SortFunc(keys, func(x, y key) int {
		return cmp.Or(cmp.Compare(x.list, y.list), compareNumbers(x.number, y.number), cmp.Compare(x.layer, y.layer))
	})
	out := make([]modelgraph.Layer, len(layers))
	for i, k := range keys {
		out[i] = layers[k.layer]
	}
	return out
}
