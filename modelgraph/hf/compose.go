package hf

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
)

// composed is the shape that a conversion makes of its pieces, which are sorted by member, then by
// source (core_model_loading.py: the operations of a WeightConverter). Pieces that do not fit
// together, or a missing member, make a flat list, which fills no parameter. want is the
// parameter's shape or nil; some operations keep a tensor of that shape.
func composed(pieces []piece, want []int64) []int64 {
	rule := pieces[0].by
	if rule == nil {
		return slices.Clone(pieces[0].stored.Shape)
	}
	lists, whole := bySource(pieces)
	for _, op := range rule.ops {
		if whole {
			lists, whole = rule.apply(op, lists, want)
		}
	}
	if whole && alone(lists) {
		return lists[0][0]
	}
	var total int64
	for i := range pieces {
		total += tables.Elements(pieces[i].stored.Shape)
	}
	return []int64{total}
}

// alone reports one source with one shape.
func alone(lists [][][]int64) bool { return len(lists) == 1 && len(lists[0]) == 1 }

// apply does one operation.
func (rule *transform) apply(op []any, lists [][][]int64, want []int64) ([][][]int64, bool) {
	name, dims := opOf(op)
	switch {
	case name == "MergeModulelist":
		whole := true
		for i := range lists {
			lists[i], whole = mergedShape(lists[i], dims[0], whole)
		}
		return lists, whole
	case name == "Concatenate":
		return concatenatedShape(lists, dims[0])
	case name == "Chunk" && alone(lists):
		return lists, chunkedShape(lists[0][0], dims[0], len(rule.to))
	case name == "Transpose" && alone(lists):
		return lists, transposedShape(lists[0][0], dims, want)
	}
	return nil, false
}

// opOf is an operation's name and its numbers.
func opOf(op []any) (name string, dims []int) {
	name, _ = op[0].(string)
	for _, value := range op[1:] {
		number, _ := value.(float64) // as JSON has them
		dims = append(dims, int(number))
	}
	return name, dims
}

// bySource are the shapes of each source's members, in order; whole is false if some are missing.
func bySource(pieces []piece) (lists [][][]int64, whole bool) {
	for i := range pieces {
		for len(lists) <= pieces[i].source {
			lists = append(lists, nil)
		}
		at := pieces[i].source
		if pieces[i].by != pieces[0].by || pieces[i].member != len(lists[at]) {
			return nil, false
		}
		lists[at] = append(lists[at], slices.Clone(pieces[i].stored.Shape))
	}
	for _, list := range lists {
		if len(list) != len(lists[0]) {
			return nil, false
		}
	}
	return lists, true
}

// mergedShape stacks a list along a new dimension.
func mergedShape(list [][]int64, dim int, whole bool) ([][]int64, bool) {
	for _, shape := range list {
		whole = whole && slices.Equal(shape, list[0]) && dim <= len(shape)
	}
	if !whole {
		return nil, false
	}
	return [][]int64{slices.Insert(slices.Clone(list[0]), dim, int64(len(list)))}, true
}

// concatenatedShape lays the sources after each other along a dimension.
func concatenatedShape(lists [][][]int64, dim int) ([][][]int64, bool) {
	var out []int64
	for _, list := range lists {
		if len(list) != 1 || len(list[0]) <= dim {
			return nil, false
		}
		if out == nil {
			out = list[0]
			continue
		}
		sum := out[dim] + list[0][dim]
		if out[dim] = list[0][dim]; !slices.Equal(out, list[0]) {
			return nil, false
		}
		out[dim] = sum
	}
	return [][][]int64{{out}}, out != nil
}

// chunkedShape is the shape of one of several equal pieces.
func chunkedShape(shape []int64, dim, pieces int) bool {
	if len(shape) <= dim || shape[dim]%int64(pieces) != 0 {
		return false
	}
	shape[dim] /= int64(pieces)
	return true
}

// transposedShape swaps two dimensions; with a nonzero third number, unless the shape is want.
func transposedShape(shape []int64, dims []int, want []int64) bool {
	if len(dims) != 3 || max(dims[0], dims[1]) >= len(shape) {
		return false
	}
	if dims[2] == 0 || !slices.Equal(shape, want) {
		shape[dims[0]], shape[dims[1]] = shape[dims[1]], shape[dims[0]]
	}
	return true
}
