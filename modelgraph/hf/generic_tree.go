package hf

import (
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// tree is the module tree that tensor names spell.
type tree struct {
	ck      *safetensors.Checkpoint
	names   map[string]bool   // of tensors
	parents map[string]bool   // modules with modules below them
	first   map[string]string // list to its first number
	lists   map[string]bool   // paths with two or more numbered children
}

func newTree(ck *safetensors.Checkpoint) *tree {
	t := &tree{
		ck: ck, names: make(map[string]bool, len(ck.Tensors)),
		parents: make(map[string]bool), first: make(map[string]string), lists: make(map[string]bool),
	}
	for i := range ck.Tensors {
		t.names[ck.Tensors[i].Name] = true
	}
	seen := make(map[string]bool)
	for i := range ck.Tensors {
		module := parent(t.base(ck.Tensors[i].Name))
		if module != "" && !seen[module] {
			seen[module] = true
			t.addModule(module)
		}
	}
	return t
}

func (t *tree) addModule(path string) {
	for p := path; p != ""; p = parent(p) {
		up, last := cutLast(p)
		t.parents[up] = true
		if !decimal(last) {
			continue
		}
		if number, ok := t.first[up]; !ok {
			t.first[up] = last
		} else if number != last {
			t.lists[up] = true
		}
	}
}

// base is the tensor that a name belongs to: quantised storage hangs its
// tables below the weight's own name (q.weight, q.weight.absmax).
func (t *tree) base(name string) string {
	for i := range name {
		if name[i] == '.' && t.names[name[:i]] {
			return name[:i]
		}
	}
	return name
}

// unit is the member of the outermost numbered list on a module's path.
func (t *tree) unit(module string) string {
	for i := 0; i < len(module); {
		end := len(module)
		if n := strings.IndexByte(module[i:], '.'); n >= 0 {
			end = i + n
		}
		if decimal(module[i:end]) && t.lists[module[:max(0, i-1)]] {
			return module[:end]
		}
		i = end + 1
	}
	return ""
}

// layers makes a layer for each module that holds tensors; outside a unit, a
// tensor of a module that has children is a layer of its own.
func (t *tree) layers() []modelgraph.Layer {
	at := make(map[string]int)
	var layers []modelgraph.Layer
	for i := range t.ck.Tensors {
		stored := &t.ck.Tensors[i]
		base := t.base(stored.Name)
		name := parent(base)
		unit := t.unit(name)
		if unit == "" && (name == "" || t.parents[name]) {
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
			Shape: stored.Shape, DType: stored.DType, Parts: []modelgraph.Part{storedPart(t.ck, stored)},
		})
	}
	return inOrder(layers)
}
