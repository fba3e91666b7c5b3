package downset

import (
	"math"
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// leaves joins an item that takes no time and has one neighbour to that neighbour. This loses
// nothing: on the neighbour's device the item adds no time, no inner edge crosses, and no other
// item is ordered with it. If its size counts, it joins only with coarse, and if one device of any
// kind has room for both.
func leaves(in *graph.Instance, edges [][2]int, coarse bool) []int {
	near := neighbours(in, edges)
	capacity, roomy := smallest(in), sizesNeverBind(in)
	size := slices.Clone(in.Size)
	part := make([]int, len(in.Nodes))
	var queue []int
	for i := range part {
		part[i] = i
		queue = append(queue, i)
	}
	for ; len(queue) > 0; queue = queue[1:] {
		i := queue[0]
		if len(near[i]) != 1 || part[i] != i || !timeless(in, i) {
			continue
		}
		for j := range near[i] {
			if free := size[i] == 0 || roomy; !free && !(coarse && size[i]+size[j] <= capacity) {
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

func neighbours(in *graph.Instance, edges [][2]int) []map[int]bool {
	near := make([]map[int]bool, len(in.Nodes))
	for i := range near {
		near[i] = make(map[int]bool)
	}
	for _, edge := range edges {
		near[edge[0]][edge[1]], near[edge[1]][edge[0]] = true, true
	}
	for _, net := range in.Nets {
		for _, sink := range net.Sinks {
			near[net.Source][sink], near[sink][net.Source] = true, true
		}
	}
	return near
}

func timeless(in *graph.Instance, i int) bool {
	for kind := range in.Time {
		if in.Time[kind][i] != 0 {
			return false
		}
	}
	return true
}

// sizesNeverBind reports that all items together fit on every device.
func sizesNeverBind(in *graph.Instance) bool { return graph.Sum(in.Size) <= smallest(in) }

func smallest(in *graph.Instance) float64 {
	least := math.Inf(1)
	for _, kind := range in.Problem.Kinds {
		least = min(least, kind.SizeLimit())
	}
	return least
}
