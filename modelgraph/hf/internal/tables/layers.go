package tables

import (
	"maps"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/spell"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// Tied are the groups of names that share a tensor, the owner first.
func (tree *Tree) Tied() [][]string {
	root := func(name string) string {
		for range len(tree.Ties) {
			owner, ok := tree.Ties[name]
			if !ok {
				break
			}
			name = owner
		}
		return name
	}
	groups := make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(tree.Ties)) {
		owner := root(name)
		groups[owner] = append(groups[owner], name)
	}
	var out [][]string
	for _, owner := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, append([]string{owner}, groups[owner]...))
	}
	return out
}

// Layers makes a layer for each module with tensors, as [listed.layers] does.
func (tree *Tree) Layers(class *Class, dtype modelgraph.DType, op *operating) []modelgraph.Layer {
	above, reviewed := tree.above(), class.reviewed()
	if reviewed != nil {
		buffersLast(tree.Tensors, above)
	}
	slices.SortStableFunc(tree.Tensors, func(x, y Tensor) int { return slices.Compare(x.Key, y.Key) })
	unit := tree.unitOf()
	if reviewed != nil {
		unit = reviewed.unitOf
	}
	keep := AnyIn(class.Float32Names(dtype))
	at := make(map[string]int)
	var layers []modelgraph.Layer
	for i := range tree.Tensors {
		t := &tree.Tensors[i]
		u, module := unit(t.Name), paths.Parent(t.Name)
		if op != nil {
			module = op.layerOf(t.Name)
		} else if u == "" && (module == "" || above[module]) {
			module = t.Name
		}
		j, ok := at[module]
		if !ok {
			j = len(layers)
			at[module] = j
			layers = append(layers, modelgraph.Layer{Name: module, Op: modelgraph.Opaque{}, Unit: u})
		}
		made := modelgraph.Tensor{Name: strings.TrimPrefix(strings.TrimPrefix(t.Name, module), "."), Shape: t.Shape, DType: dtype}
		if t.dtype != "" {
			made.DType = spell.DType(t.dtype)
		} else if keep != nil && !t.Buffer && keep(t.Name) {
			made.DType = modelgraph.F32
		}
		if t.Buffer {
			made.Persistent = t.Persistent
			layers[j].Buffers = append(layers[j].Buffers, made)
		} else {
			layers[j].Params = append(layers[j].Params, made)
		}
	}
	if op != nil {
		op.lists = tree.Outermost
		op.complete(layers, unit)
		layers = op.layers
	}
	return layers
}

// buffersLast sorts a module's own buffers after its modules, as Accelerate does
// (utils/modeling.py: infer_auto_device_map).
func buffersLast(tensors []Tensor, above map[string]bool) {
	const behind = 1 << 30
	for i := range tensors {
		if t := &tensors[i]; t.Buffer && above[paths.Parent(t.Name)] && len(t.Key) > 0 {
			t.Key = slices.Clone(t.Key)
			t.Key[len(t.Key)-1] += behind
		}
	}
}

// unitOf gives the unit of a name: a no-split module, or a member of the outermost lists that is in
// none and has no list of them. The forward of such a member adds results, as in a layer of BLIP's text
// model, and runs again as a whole, as RobertaPreLayerNorm's, whose attention is a no-split module.
func (tree *Tree) unitOf() func(name string) string {
	maps.DeleteFunc(tree.Units, func(_, class string) bool { return class != "" && !slices.Contains(tree.NoSplit, class) })
	names := &safetensors.Checkpoint{Tensors: make([]safetensors.Tensor, len(tree.Tensors))}
	for i := range tree.Tensors {
		names.Tensors[i].Name = tree.Tensors[i].Name
	}
	lists := paths.NewTree(names)
	tree.lists = lists
	if len(tree.Units) > 0 {
		whole := make(map[string]bool)
		for i := range tree.Tensors {
			name := tree.Tensors[i].Name
			in, unit := lists.Unit(paths.Parent(name)), tree.unit(name)
			inside, part := strings.CutPrefix(unit, in+".")
			whole[in] = whole[in] || unit != "" && (!part || len(numbersIn(inside)) > 0)
		}
		return func(name string) string {
			if in := lists.Unit(paths.Parent(name)); in != "" && !whole[in] {
				return in
			}
			return tree.unit(name)
		}
	}
	tree.Outermost, tree.holders = true, make(map[string]bool)
	for i := range tree.Tensors {
		if in := lists.Unit(paths.Parent(tree.Tensors[i].Name)); in != "" {
			for up := paths.Parent(in); !tree.holders[up]; up = paths.Parent(up) {
				tree.holders[up] = true
			}
		}
	}
	return func(name string) string {
		if in := lists.Unit(paths.Parent(name)); in != "" {
			return in
		}
		return outside(tree.holders, lists, name)
	}
}

// outside is the unit of a name outside the lists: a child, with submodules, of a module with a
// list. Its forward joins their results.
func outside(holders map[string]bool, lists *paths.Tree, name string) string {
	for path := range prefixes(name) {
		if holders[paths.Parent(path)] && !holders[path] {
			if lists.Parents[path] {
				return path
			}
			return ""
		}
	}
	return ""
}

// join binds the layers whose results a forward joins. They are modules before a list (embeddings
// of tokens and positions), and operands of the model's scales and of other parameters.
func (tree *Tree) join(graph *modelgraph.Graph) error {
	joined := append(scaled(graph, tree.lists), met(graph, tree.lists)...)
	if !tree.Outermost {
		return modelgraph.Join(graph, joined)
	}
	groups, closed, last := make(map[string][]string), make(map[string]bool), -1
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		child, up := layer.Name, paths.Parent(layer.Name)
		for child != "" && !tree.holders[up] {
			child, up = up, paths.Parent(up)
		}
		for at := up; at != ""; at = paths.Parent(at) { // a holder has begun
			closed[paths.Parent(at)] = true
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
func scaled(graph *modelgraph.Graph, lists *paths.Tree) [][]string {
	towers, last := make(map[string]bool), make(map[string]string)
	top := func(name string) string { return childOf(name, "") }
	for i := range graph.Layers {
		name := graph.Layers[i].Name
		towers[top(name)] = towers[top(name)] || lists.Unit(name) != ""
		last[top(name)] = name
	}
	var joined []string
	scales, ends := 0, 0
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		switch child := top(layer.Name); {
		case lists.Names[layer.Name] && len(layer.Params) == 1 && layer.Params[0].Numel == 1:
			scales++
		case towers[child] && last[child] == layer.Name:
			ends++
		case towers[child] || lists.Names[layer.Name]:
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
func (tree *Tree) above() map[string]bool {
	above := make(map[string]bool)
	for i := range tree.Tensors {
		for up := paths.Parent(paths.Parent(tree.Tensors[i].Name)); !above[up]; up = paths.Parent(up) {
			above[up] = true
		}
	}
	return above
}

// unit is the outermost module around a tensor that is not split.
func (tree *Tree) unit(name string) string {
	for path := range prefixes(paths.Parent(name)) {
		if _, ok := tree.Units[path]; ok {
			return path
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
		if op.lists && !paths.Decimal(paths.Last(layer.Unit)) {
			continue
		}
		if layer.Unit != "" && runs[layer.Unit] && layer.Op == (modelgraph.Opaque{}) && layer.Declared == nil && len(layer.Params) > 0 {
			op.of.fail("the forward does not use %q", layer.Name)
		}
	}
}
