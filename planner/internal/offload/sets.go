package offload

import (
	"container/heap"
	"slices"
)

// set is the number of offloaded sets of each class; last is the highest class among them.
type set struct {
	counts []uint16
	last   int
	bytes  int64
	frees  int64
}

// setOrder lists sets in the order of their bytes. A set with n of its last class has up to three
// successors. One has another of that class, and one adds the next class. If n is 1, one has the
// next class instead. Classes are in order of bytes too. So each set is made once, from a set with
// no more bytes. The heap grows by at most two per set, however many classes there are.
type setOrder struct {
	classes []class
	heap    setHeap
}

func newSetOrder(classes []class) *setOrder {
	order := &setOrder{classes: classes}
	if len(classes) > 0 {
		order.push(set{counts: make([]uint16, len(classes))}, -1, 0)
	}
	return order
}

// push adds the set with one less of class drop (none: -1) and one more of class add.
func (order *setOrder) push(s set, drop, add int) {
	if int(s.counts[add]) == len(order.classes[add].sets) {
		return
	}
	next := set{slices.Clone(s.counts), add, s.bytes + order.classes[add].bytes, s.frees + order.classes[add].frees}
	next.counts[add]++
	if drop >= 0 {
		next.counts[drop]--
		next.bytes, next.frees = next.bytes-order.classes[drop].bytes, next.frees-order.classes[drop].frees
	}
	heap.Push(&order.heap, next)
}

// next returns the next set in order; false if there is none.
func (order *setOrder) next() (set, bool) {
	if len(order.heap) == 0 {
		return set{}, false
	}
	s := heap.Pop(&order.heap).(set) //nolint:errcheck,forcetypeassert // our own
	order.push(s, -1, s.last)
	if after := s.last + 1; after < len(order.classes) {
		order.push(s, -1, after)
		if s.counts[s.last] == 1 {
			order.push(s, s.last, after)
		}
	}
	return s, true
}

type setHeap []set

func (h setHeap) Len() int { return len(h) }

func (h setHeap) Less(a, b int) bool {
	if h[a].bytes != h[b].bytes {
		return h[a].bytes < h[b].bytes
	}
	return slices.Compare(h[a].counts, h[b].counts) < 0
}

func (h setHeap) Swap(a, b int) { h[a], h[b] = h[b], h[a] }

// Push implements heap.Interface.
func (h *setHeap) Push(x any) { *h = append(*h, x.(set)) } //nolint:errcheck,forcetypeassert // our own

// Pop implements heap.Interface.
func (h *setHeap) Pop() any {
	last := len(*h) - 1
	out := (*h)[last]
	*h = (*h)[:last]
	return out
}
