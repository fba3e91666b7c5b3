package paths

import (
	"cmp"
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

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
