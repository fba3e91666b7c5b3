package serving

import "slices"

// value is a tensor of one pass.
type value struct {
	shape   [3]int64 // row first
	size    int64    // bytes
	of      *value   // the value that it is a view of; nil: none
	over    bool     // its operation may write over an operand (ggml_op_can_inplace)
	from    []*value
	lasting bool // until the end of the pass: inputs of pipelined devices, and outputs
	copied  bool // from another device

	children, views int
	own             bool // it has a place in the arena
	at              int64
}

// outside is a value in another buffer: a weight, the cache.
var outside = &value{}

// graph has the values of a device in the order of their computation.
type graph struct {
	nodes []*value
	seen  map[*value]bool
}

// expand adds a value after those that it is computed from (ggml_build_forward_expand).
func (graph *graph) expand(result *value) {
	if graph.seen[result] || result == outside {
		return
	}
	graph.seen[result] = true
	if result.copied {
		return
	}
	for _, operand := range result.from {
		graph.expand(operand)
	}
	graph.nodes = append(graph.nodes, result)
}

// made returns a new value in fp32.
func made(shape [3]int64, from ...*value) *value {
	const fp32 = 4
	return &value{shape: shape, size: fp32 * shape[0] * shape[1] * shape[2], from: from}
}

// over returns a value that may take the place of its first operand.
func over(from ...*value) *value {
	result := made(from[0].shape, from...)
	result.over = true
	return result
}

// viewed returns a view of a value with another shape.
func viewed(shape [3]int64, from *value) *value {
	root := from
	if from.of != nil {
		root = from.of
	}
	return &value{shape: shape, size: from.size, of: root, from: []*value{from}}
}

// run puts all values through an arena, and returns its size (ggml_gallocr_alloc_graph_impl). after
// is called after each value.
func (graph *graph) run(inputs []*value, alignment int64, after func(node *value, arena *arena)) int64 {
	arena := newArena(alignment)
	for _, input := range inputs {
		arena.put(input)
	}
	for _, node := range graph.nodes {
		if node.of != nil {
			node.of.views++
		}
		for _, operand := range node.from {
			operand.children++
		}
	}
	for _, node := range graph.nodes {
		arena.put(node)
		for _, operand := range node.from {
			operand.children--
			if operand.children == 0 && operand.views == 0 {
				arena.drop(operand)
			}
		}
		after(node, arena)
	}
	return arena.most
}

// put gives a value its place.
func (arena *arena) put(node *value) {
	if node.own || node.of != nil || node == outside {
		return
	}
	node.own = true
	if node.over && slices.ContainsFunc(node.from, func(operand *value) bool { return arena.reuse(node, operand) }) {
		return
	}
	node.at = arena.take(node.size)
}

// reuse takes the place of an operand that nothing else reads. A view has no place of its own.
func (arena *arena) reuse(node, operand *value) bool {
	if !operand.own || operand.lasting || operand.shape != node.shape || operand.size != node.size || operand.children != 1 || operand.views != 0 {
		return false
	}
	node.at, operand.own = operand.at, false
	return true
}

// drop frees a value that nothing reads any more, or the one that it is a view of.
func (arena *arena) drop(operand *value) {
	root := operand
	if operand.of != nil {
		root = operand.of
		root.views--
		if root.views != 0 || root.children != 0 {
			return
		}
	}
	if root.own && !root.lasting {
		arena.give(root.at, root.size)
		root.own = false
	}
}
