package stages

import (
	"context"
	"encoding/binary"
	"slices"
)

// family is a set of down-sets, with the steps between those that differ by
// one node. Set 0 is the full one, and they stand from large to small.
type family struct {
	words int
	bits  []uint64 // words a set
	below [][]step
	empty int
	// whole: these are all down-sets of the graph.
	whole bool
}

type step struct{ to, node int32 }

func (f *family) len() int           { return len(f.below) }
func (f *family) has(i, v int) bool  { return f.bits[i*f.words+v/64]>>(v%64)&1 != 0 }
func (f *family) set(i int) []uint64 { return f.bits[i*f.words : (i+1)*f.words] }

// everything is a width that leaves no down-set out.
const everything = 1 << 30

// enumerate lists the down-sets that are at most width places away from a
// prefix of the order: the last node they hold is less than width places
// after the first node they lack. Width 0 leaves the prefixes alone.
//
// Between two such sets, one in the other, there is always a way by single
// steps inside the family: take the last node of the difference away first.
// It returns nil where there are more than limit, or ctx ends.
func enumerate(ctx context.Context, w *web, width, limit int) *family {
	n := len(w.order)
	e := &enumeration{
		family: &family{words: (n + 63) / 64, whole: width >= n, below: make([][]step, 1)},
		web:    w, known: make(map[string]int32),
	}
	e.set, e.key = make([]uint64, e.words), make([]byte, 8*e.words)
	for v := range n {
		e.set[v/64] |= 1 << (v % 64)
	}
	e.bits = append(e.bits, e.set...)
	e.known[string(e.write())] = 0
	var last []int32
	for v := range n {
		if len(w.out[v]) == 0 {
			last = append(last, int32(v))
		}
	}
	e.edge = []border{{lacks: n, holds: n - 1, last: last}}
	for i := 0; i < e.len(); i++ { //nolint:intrange // it grows
		if i%1024 == 0 && ctx.Err() != nil {
			return nil
		}
		for _, v := range e.edge[i].last {
			e.without(i, int(v), width)
		}
		e.edge[i].last = nil
		if len(e.below) > limit {
			return nil
		}
	}
	e.empty = len(e.below) - 1 // the only set of its size, the least
	return e.family
}

// enumeration is a family in the making.
type enumeration struct {
	*family
	*web
	known map[string]int32
	edge  []border
	set   []uint64
	key   []byte
}

// border is where a set ends: the first place of the order that it lacks, the
// last that it holds, and the nodes that none of it reads.
type border struct {
	lacks, holds int
	last         []int32
}

// without adds the step from set i to that without v, and that set where it is
// new.
func (e *enumeration) without(i, v, width int) {
	copy(e.set, e.family.set(i))
	e.set[v/64] &^= 1 << (v % 64)
	b := border{lacks: min(e.edge[i].lacks, e.at[v]), holds: e.edge[i].holds}
	for b.holds >= 0 && !e.holds(e.order[b.holds]) {
		b.holds--
	}
	if b.holds-b.lacks >= width {
		return
	}
	to, known := e.known[string(e.write())]
	if !known {
		to = int32(len(e.below))
		e.known[string(e.key)] = to
		for _, u := range e.edge[i].last {
			if int(u) != v {
				b.last = append(b.last, u)
			}
		}
		for k, a := range e.in[v] {
			if !e.read(a.node) && !slices.ContainsFunc(e.in[v][:k], func(o arc) bool { return o.node == a.node }) {
				b.last = append(b.last, int32(a.node))
			}
		}
		e.bits, e.below, e.edge = append(e.bits, e.set...), append(e.below, nil), append(e.edge, b)
	}
	e.below[i] = append(e.below[i], step{to, int32(v)})
}

func (e *enumeration) holds(v int) bool { return e.set[v/64]>>(v%64)&1 != 0 }

// read: some node of the set reads v.
func (e *enumeration) read(v int) bool {
	return slices.ContainsFunc(e.out[v], func(a arc) bool { return e.holds(a.node) })
}

// write turns the set into a key.
func (e *enumeration) write() []byte {
	for i, word := range e.set {
		binary.LittleEndian.PutUint64(e.key[8*i:], word)
	}
	return e.key
}
