package stages

import (
	"context"
	"encoding/binary"
	"math/bits"
	"slices"
)

// family is a set of down-sets, with the steps between those that differ by one node. They are
// ordered from large to small, and set 0 is the full one.
type family struct {
	// Below lists the steps from each set to the sets with one node less.
	Below [][]step
	// Empty is the index of the empty set.
	Empty int
	// Whole: the family has all down-sets of the graph.
	Whole bool

	words int
	bits  []uint64 // words a set
}

// step leads to the set without the node.
type step struct{ To, Node int32 }

// Len is the number of sets.
func (sets *family) Len() int { return len(sets.Below) }

// Has reports that set i has the node.
func (sets *family) Has(i, node int) bool { return sets.bits[i*sets.words+node/64]>>(node%64)&1 != 0 }

func (sets *family) set(i int) []uint64 { return sets.bits[i*sets.words : (i+1)*sets.words] }

// Nodes returns the nodes in the difference of two sets, ascending.
func (sets *family) Nodes(upper, lower int) []int {
	var nodes []int
	for k, word := range sets.set(upper) {
		for word &^= sets.set(lower)[k]; word != 0; word &= word - 1 {
			nodes = append(nodes, 64*k+bits.TrailingZeros64(word))
		}
	}
	return nodes
}

// Sums returns the sum of a value over the nodes of every set.
func (sets *family) Sums(nodes int, of func(node int) float64) []float64 {
	value := make([]float64, nodes)
	for node := range value {
		value[node] = of(node)
	}
	sum := make([]float64, sets.Len())
	for i := sets.Len() - 1; i >= 0; i-- {
		// Every set follows one with one node more; the smaller it is, the later it was found.
		if below := sets.Below[i]; len(below) > 0 {
			sum[i] = sum[below[0].To] + value[below[0].Node]
		}
	}
	return sum
}

// enumerate lists the down-sets at most width places from a prefix of the order: the last node of
// each is less than width places after the first node outside it. Width 0 gives only the prefixes.
//
// Between two nested sets of the family, there is always a way by single steps inside it: remove
// the last node of the difference first. It returns nil if there are more than limit, or ctx ends.
func enumerate(ctx context.Context, network *ordered, width, limit int) *family {
	count := len(network.Order)
	e := &enumeration{
		family:  &family{words: (count + 63) / 64, Whole: width >= count, Below: make([][]step, 1)},
		ordered: network, known: make(map[string]int32),
	}
	e.set, e.key = make([]uint64, e.words), make([]byte, 8*e.words)
	for node := range count {
		e.set[node/64] |= 1 << (node % 64)
	}
	e.bits = append(e.bits, e.set...)
	e.known[string(e.write())] = 0
	var last []int32
	for node := range count {
		if len(network.Out[node]) == 0 {
			last = append(last, int32(node))
		}
	}
	e.edge = []border{{lacks: count, contains: count - 1, last: last}}
	for i := 0; i < e.Len(); i++ { //nolint:intrange // it grows
		if i%1024 == 0 && ctx.Err() != nil {
			return nil
		}
		for _, node := range e.edge[i].last {
			e.without(i, int(node), width)
		}
		e.edge[i].last = nil
		if len(e.Below) > limit {
			return nil
		}
	}
	e.Empty = len(e.Below) - 1 // the only set of its size, the least
	return e.family
}

// enumeration is a family while it is built.
type enumeration struct {
	*family
	*ordered
	known map[string]int32
	edge  []border
	set   []uint64
	key   []byte
}

// border is the end of a set: the first place of the order outside it, its last place, and the
// nodes that no node of the set reads.
type border struct {
	lacks, contains int
	last            []int32
}

// without adds the step from set i to the set without node, and that set if it is new.
func (e *enumeration) without(i, node, width int) {
	copy(e.set, e.family.set(i))
	e.set[node/64] &^= 1 << (node % 64)
	b := border{lacks: min(e.edge[i].lacks, e.At[node]), contains: e.edge[i].contains}
	for b.contains >= 0 && !e.contains(e.Order[b.contains]) {
		b.contains--
	}
	if b.contains-b.lacks >= width {
		return
	}
	to, known := e.known[string(e.write())]
	if !known {
		to = int32(len(e.Below))
		e.known[string(e.key)] = to
		for _, u := range e.edge[i].last {
			if int(u) != node {
				b.last = append(b.last, u)
			}
		}
		for k, from := range e.In[node] {
			if !e.read(from) && !slices.Contains(e.In[node][:k], from) {
				b.last = append(b.last, int32(from))
			}
		}
		e.bits, e.Below, e.edge = append(e.bits, e.set...), append(e.Below, nil), append(e.edge, b)
	}
	e.Below[i] = append(e.Below[i], step{to, int32(node)})
}

func (e *enumeration) contains(node int) bool { return e.set[node/64]>>(node%64)&1 != 0 }

// read reports that some node of the set reads this one.
func (e *enumeration) read(node int) bool {
	return slices.ContainsFunc(e.Out[node], e.contains)
}

// write returns the set as a key.
func (e *enumeration) write() []byte {
	for i, word := range e.set {
		binary.LittleEndian.PutUint64(e.key[8*i:], word)
	}
	return e.key
}
