package hf

import (
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// tied are the groups of names that share a tensor, the owner first.
func (tree *typeTree) tied() [][]string {
	root := func(name string) string {
		for range len(tree.ties) {
			owner, ok := tree.ties[name]
			if !ok {
				break
			}
			name = owner
		}
		return name
	}
	groups := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(tree.ties)) {
		owner := root(name)
		groups[owner] = append(groups[owner], name)
	}
	var out [][]string
	for _, owner := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, append([]string{owner}, groups[owner]...))
	}
	return out
}

// layers makes a layer for each module with tensors, as [listed.layers] does.
func (tree *typeTree) layers(class *typeClass, dtype modelgraph.DType, op *operating) []modelgraph.Layer {
	above, reviewed := tree.above(), class.reviewed()
	if reviewed != nil {
		buffersLast(tree.tensors, above)
	}
	slices.SortStableFunc(tree.tensors, func(x, y typeTensor) int { return slices.Compare(x.key, y.key) })
	unit := tree.unitOf()
	if reviewed != nil {
		unit = reviewed.unitOf
	}
	keep := anyIn(class.float32Names(dtype))
	at := make(map[string]int)
	var layers []modelgraph.Layer
	for i := range tree.tensors {
		t := &tree.tensors[i]
		u, module := unit(t.name), parent(t.name)
		if op != nil {
			module = op.layerOf(t.name)
		} else if u == "" && (module == "" || above[module]) {
			module = t.name
		}
		j, ok := at[module]
		if !ok {
			j = len(layers)
			at[module] = j
			layers = append(layers, modelgraph.Layer{Name: module, Op: modelgraph.Opaque{}, Unit: u})
		}
		made := modelgraph.Tensor{Name: strings.TrimPrefix(strings.TrimPrefix(t.name, module), "."), Shape: t.shape, DType: dtype}
		if t.dtype != "" {
			made.DType = typeNamed(t.dtype)
		} else if keep != nil && !t.buffer && keep(t.name) {
			made.DType = modelgraph.F32
		}
		if t.buffer {
			made.Persistent = t.persistent
			layers[j].Buffers = append(layers[j].Buffers, made)
		} else {
			layers[j].Params = append(layers[j].Params, made)
		}
	}
	if op != nil {
		op.lists = tree.outermost
		op.complete(layers, unit)
		layers = op.layers
	}
	return layers
}

// buffersLast sorts a module's own buffers after its modules, as Accelerate does
// (utils/modeling.py: infer_auto_device_map).
func buffersLast(tensors []typeTensor, above map[string]bool) {
	const behind = 1 << 30
	for i := range tensors {
		if t := &tensors[i]; t.buffer && above[parent(t.name)] && len(t.key) > 0 {
			t.key = slices.Clone(t.key)
			t.key[len(t.key)-1] += behind
		}
	}
}

// unitOf gives the unit of a name: a no-split module, or a member of the outermost lists without
// one. The forward of such a member adds results, as in a layer of BLIP's text model.
func (tree *typeTree) unitOf() func(name string) string {
	maps.DeleteFunc(tree.units, func(_, class string) bool { return class != "" && !slices.Contains(tree.noSplit, class) })
	names := &safetensors.Checkpoint{Tensors: make([]safetensors.Tensor, len(tree.tensors))}
	for i := range tree.tensors {
		names.Tensors[i].Name = tree.tensors[i].name
	}
	lists := newTree(names)
	tree.lists = lists
	if len(tree.units) > 0 {
		whole := make(map[string]bool)
		for i := range tree.tensors {
			if name := tree.tensors[i].name; tree.unit(name) != "" {
				whole[lists.unit(parent(name))] = true
			}
		}
		return func(name string) string {
			if in := lists.unit(parent(name)); in != "" && !whole[in] {
				return in
			}
			return tree.unit(name)
		}
	}
	tree.outermost, tree.holders = true, make(map[string]bool)
	for i := range tree.tensors {
		if in := lists.unit(parent(tree.tensors[i].name)); in != "" {
			for up := parent(in); !tree.holders[up]; up = parent(up) {
				tree.holders[up] = true
			}
		}
	}
	return func(name string) string {
		if in := lists.unit(parent(name)); in != "" {
			return in
		}
		return outside(tree.holders, lists, name)
	}
}

// outside is the unit of a name outside the lists: a child, with submodules, of a module with a
// list. Its forward joins their results.
func outside(holders map[string]bool, lists *tree, name string) string {
	for at := range len(name) + 1 {
		if at < len(name) && name[at] != '.' {
			continue
		}
		if path := name[:at]; holders[parent(path)] && !holders[path] {
			if lists.parents[path] {
				return path
			}
			return ""
		}
	}
	return ""
}

// join binds the layers whose results a forward joins. They are modules before a list (embeddings
// of tokens and positions), and operands of the model's scales and of other parameters.
func (tree *typeTree) join(graph *modelgraph.Graph) error {
	joined := append(scaled(graph, tree.lists), met(graph, tree.lists)...)
	if !tree.outermost {
		return modelgraph.Join(graph, joined)
	}
	groups, closed, last := make(map[string][]string), make(map[string]bool), -1
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		child, up := layer.Name, parent(layer.Name)
		for child != "" && !tree.holders[up] {
			child, up = up, parent(up)
		}
		for at := up; at != ""; at = parent(at) { // a holder has begun
			closed[parent(at)] = true
		}
		if closed[up] = closed[up] || tree.holders[child]; !closed[up] && layer.UnitIndex != last && len(layer.Params) > 0 {
			groups[up], last = append(groups[up], layer.Name), layer.UnitIndex
		}
	}
	for _, up := range slices.Sorted(maps.Keys(groups)) {
		if len(groups[up]) > 1 && closed[up] {
			joined = append(joined, groups[up])
		}
	}
	return modelgraph.Join(graph, joined)
}

// scaled are the model's own single numbers, such as CLAP's logit scale, and their operands. These
// are results of two towers or more, and of layers outside the towers.
func scaled(graph *modelgraph.Graph, lists *tree) [][]string {
	towers, last := make(map[string]bool), make(map[string]string)
	top := func(name string) string { return childOf(name, "") }
	for i := range graph.Layers {
		name := graph.Layers[i].Name
		towers[top(name)] = towers[top(name)] || lists.unit(name) != ""
		last[top(name)] = name
	}
	var joined []string
	scales, ends := 0, 0
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		switch child := top(layer.Name); {
		case lists.names[layer.Name] && len(layer.Params) == 1 && layer.Params[0].Numel == 1:
			scales++
		case towers[child] && last[child] == layer.Name:
			ends++
		case towers[child] || lists.names[layer.Name]:
			continue
		}
		joined = append(joined, layer.Name)
	}
	if scales == 0 || ends < 2 {
		return nil
	}
	return [][]string{joined}
}

// above are the modules that have modules with tensors.
func (tree *typeTree) above() map[string]bool {
	above := make(map[string]bool)
	for i := range tree.tensors {
		for up := parent(parent(tree.tensors[i].name)); !above[up]; up = parent(up) {
			above[up] = true
		}
	}
	return above
}

// unit is the outermost module around a tensor that is not split.
func (tree *typeTree) unit(name string) string {
	for i := range name {
		if name[i] != '.' {
			continue
		}
		if _, ok := tree.units[name[:i]]; ok {
			return name[:i]
		}
	}
	return ""
}

// used fails if the forward does not use the parameters of a layer in a unit that runs.
func (op *operating) used() {
	runs := make(map[string]bool) // units
	for i := range op.layers {
		_, bare := op.layers[i].Op.(modelgraph.Parameter)
		runs[op.layers[i].Unit] = runs[op.layers[i].Unit] || !bare && op.layers[i].Op != modelgraph.Opaque{}
	}
	for i := range op.layers {
		layer := &op.layers[i]
		if op.lists && !decimal(lastComponent(layer.Unit)) {
			continue
		}
		if layer.Unit != "" && runs[layer.Unit] && layer.Op == (modelgraph.Opaque{}) && layer.Declared == nil && len(layer.Params) > 0 {
			// A decoder alone, with attention to an encoder: torch makes no gradients of these, and
			// a plan would count some.
			op.of.fail("the forward does not use %q", layer.Name)
		}
	}
}
