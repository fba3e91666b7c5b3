package partition

import (
	"math"
	"slices"
)

// leaves joins an item that costs nothing by itself and has one neighbour to
// that neighbour. It loses nothing: on the neighbour's device the item adds no
// time, no edge that was inside crosses, and nothing else is in order with it.
// Its size may count; then it joins only where coarse says so and one device
// of any kind holds both.
func leaves(in *instance, edges [][2]int, coarse bool) []int {
	near := in.neighbours(edges)
	room, roomy := in.smallest(), in.sizesNeverBind()
	size := slices.Clone(in.size)
	part := make([]int, len(in.nodes))
	var queue []int
	for i := range part {
		part[i] = i
		queue = append(queue, i)
	}
	for ; len(queue) > 0; queue = queue[1:] {
		i := queue[0]
		if len(near[i]) != 1 || part[i] != i || !in.timeless(i) {
			continue
		}
		for j := range near[i] {
			if free := size[i] == 0 || roomy; !free && !(coarse && size[i]+size[j] <= room) {
				continue
			}
			part[i] = j
			size[j] += size[i]
			delete(near[j], i)
			queue = append(queue, j)
		}
	}
	for i := range part {
		for part[i] != part[part[i]] {
			part[i] = part[part[i]]
		}
	}
	return part
}

func (in *instance) neighbours(edges [][2]int) []map[int]bool {
	near := make([]map[int]bool, len(in.nodes))
	for i := range near {
		near[i] = make(map[int]bool)
	}
	for _, e := range edges {
		near[e[0]][e[1]], near[e[1]][e[0]] = true, true
	}
	for _, n := range in.nets {
		for _, s := range n.sinks {
			near[n.source][s], near[s][n.source] = true, true
		}
	}
	return near
}

func (in *instance) timeless(i int) bool {
	for k := range in.time {
		if in.time[k][i] != 0 {
			return false
		}
	}
	return true
}

// sizesNeverBind: everything together fits every device.
func (in *instance) sizesNeverBind() bool { return sum(in.size) <= in.smallest() }

func (in *instance) smallest() float64 {
	least := math.Inf(1)
	for _, k := range in.p.Kinds {
		least = min(least, k.room())
	}
	return least
}
