package assign

import (
	"cmp"
	"container/heap"
	"slices"
)

// part is one device's items in a partial partition, as a list that is shared
// when parts are joined.
type part struct {
	load  int64
	items *list
}

type list struct {
	item        int // −1: the union of two lists
	left, right *list
}

// partition is k parts, largest first.
type partition []part

func (p partition) spread() int64 { return p[0].load - p[len(p)-1].load }

type partitions []partition

func (h partitions) Len() int           { return len(h) }
func (h partitions) Less(i, j int) bool { return h[i].spread() > h[j].spread() }
func (h partitions) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *partitions) Push(x any)        { *h = append(*h, x.(partition)) } //nolint:errcheck // heap's own
func (h *partitions) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// ldm is the largest differencing method of Karmarkar and Karp (UCB/CSD
// 82/113, 1982) for k parts: join the two partitions of widest spread, large
// parts with small. It takes the devices for alike.
func (it *items) ldm() []int {
	k := len(it.p.Budgets)
	h := make(partitions, len(it.weight))
	for pos, w := range it.weight {
		h[pos] = make(partition, k)
		h[pos][0] = part{w, &list{item: pos}}
	}
	heap.Init(&h)
	for len(h) > 1 {
		a, _ := heap.Pop(&h).(partition)
		b := h[0]
		for d := range a {
			a[d] = part{a[d].load + b[k-1-d].load, join(a[d].items, b[k-1-d].items)}
		}
		slices.SortStableFunc(a, func(x, y part) int { return cmp.Compare(y.load, x.load) })
		h[0] = a
		heap.Fix(&h, 0)
	}
	place := make([]int, len(it.weight))
	if len(h) == 1 {
		for d, p := range h[0] {
			p.items.each(func(pos int) { place[pos] = d })
		}
	}
	return place
}

func join(a, b *list) *list {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return &list{-1, a, b}
}

func (l *list) each(visit func(int)) {
	for l != nil {
		if l.item >= 0 {
			visit(l.item)
			return
		}
		l.left.each(visit)
		l = l.right
	}
}
