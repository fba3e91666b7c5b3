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

func (parts partition) spread() int64 { return parts[0].load - parts[len(parts)-1].load }

type partitions []partition

func (parts partitions) Len() int           { return len(parts) }
func (parts partitions) Less(i, j int) bool { return parts[i].spread() > parts[j].spread() }
func (parts partitions) Swap(i, j int)      { parts[i], parts[j] = parts[j], parts[i] }
func (parts *partitions) Push(x any)        { *parts = append(*parts, x.(partition)) } //nolint:errcheck // heap's own
func (parts *partitions) Pop() any {
	last := (*parts)[len(*parts)-1]
	*parts = (*parts)[:len(*parts)-1]
	return last
}

// ldm is the largest differencing method of Karmarkar and Karp (UCB/CSD
// 82/113, 1982) for k parts: join the two partitions of widest spread, large
// parts with small. It takes the devices for alike.
func (it *itemTable) ldm() []int {
	k := len(it.problem.Budgets)
	parts := make(partitions, len(it.weight))
	for pos, weight := range it.weight {
		parts[pos] = make(partition, k)
		parts[pos][0] = part{weight, &list{item: pos}}
	}
	heap.Init(&parts)
	for len(parts) > 1 {
		a, _ := heap.Pop(&parts).(partition)
		b := parts[0]
		for device := range a {
			a[device] = part{a[device].load + b[k-1-device].load, join(a[device].items, b[k-1-device].items)}
		}
		slices.SortStableFunc(a, func(x, y part) int { return cmp.Compare(y.load, x.load) })
		parts[0] = a
		heap.Fix(&parts, 0)
	}
	place := make([]int, len(it.weight))
	if len(parts) == 1 {
		for device, p := range parts[0] {
			p.items.each(func(pos int) { place[pos] = device })
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
