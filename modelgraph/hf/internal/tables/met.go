package tables

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
)

// met are the parameters of modules with submodules, and the results of these before the last with
// a list. Sam2Model.forward adds no_memory_embedding to its vision encoder's result;
// MLCDVisionModel.forward joins class_pos_emb and rotated positions.
func met(graph *modelgraph.Graph, lists *paths.Tree) (joined [][]string) {
	seen := make(map[string]bool)
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		up := paths.Parent(layer.Name)
		if seen[up] || lists.Unit(layer.Name) != "" || !lists.Names[layer.Name] || len(layer.Params) == 0 || layer.Params[0].Numel < 2 {
			continue
		}
		seen[up] = true
		if group := preceding(graph, lists, up); len(group) > 1 {
			joined = append(joined, group)
		}
	}
	return joined
}

// preceding are the layers of a module before its last child with a list. They are other children,
// and the ends of children with lists (from the longest list's last layer on). Children without
// parameters count, such as rotated positions. A child smaller than a member of another's list,
// such as Sam2's mask decoder, is included whole.
func preceding(graph *modelgraph.Graph, lists *paths.Tree, up string) (names []string) {
	under := within(graph, up)
	longest, whole, last := listsIn(under, lists, up)
	ended, ends := false, make(map[string][]string)
	for _, layer := range under {
		child := childOf(layer.Name, up)
		switch list := longest[child]; {
		case whole[child]:
			names = append(names, layer.Name)
		case child == last:
			ended = true
		case list == "" && (!ended || len(layer.Params) == 0):
			names = append(names, layer.Name)
		case list == "":
		case list == paths.Parent(lists.Unit(layer.Name)):
			ends[child] = []string{layer.Name}
		case ends[child] != nil:
			ends[child] = append(ends[child], layer.Name)
		}
	}
	for _, child := range slices.Sorted(maps.Keys(ends)) {
		names = append(names, ends[child]...)
	}
	return names
}

// listsIn returns the longest list of each child of a module, the children smaller than a list's
// member, and the last child with a list.
func listsIn(under []*modelgraph.Layer, lists *paths.Tree, up string) (longest map[string]string, whole map[string]bool, last string) {
	length, sizes, largest := make(map[string]int), make(map[string]int64), int64(0)
	longest, whole = make(map[string]string), make(map[string]bool)
	for _, layer := range under {
		child, unit := childOf(layer.Name, up), lists.Unit(layer.Name)
		for i := range layer.Params {
			sizes[child] += layer.Params[i].Numel
			if unit != "" {
				sizes[unit] += layer.Params[i].Numel
				largest = max(largest, sizes[unit])
			}
		}
		if list, number := paths.CutLast(unit); list != "" {
			if at, _ := strconv.Atoi(number); at >= length[child] {
				longest[child], length[child] = list, at+1
			}
			last = child
		}
	}
	for child := range longest {
		whole[child] = sizes[child] < largest
	}
	return longest, whole, last
}

func within(graph *modelgraph.Graph, up string) (layers []*modelgraph.Layer) {
	for i := range graph.Layers {
		if layer := &graph.Layers[i]; up == "" || strings.HasPrefix(layer.Name, up+".") {
			layers = append(layers, layer)
		}
	}
	return layers
}

// childOf is the module's child that contains a name.
func childOf(name, up string) string {
	if up != "" {
		name = name[len(up)+1:]
	}
	child, _, _ := strings.Cut(name, ".")
	return child
}
