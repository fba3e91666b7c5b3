package assignmemory

import (
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/assignment"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// packing is a branch and bound for a map within given peaks. It fills device by device with every
// set of items that no other item fits with (dominance: Martello and Toth, Knapsack Problems, 1990,
// §8.5). It remembers the items left that failed to fit on the remaining devices.
type packing struct {
	under    *search
	loads    []*assignment.Load
	caps     []int64
	order    []int     // devices, those unlike all others first
	kinds    []int     // largest first
	left     []int     // items of each kind without a device
	headroom [][]int64 // per moment: free memory of the devices from order[i] on, and gain
	failed   map[string]bool
	nodes    int
	gaveUp   bool
}

// maxFailed limits the remembered failures, about 100 B each.
const maxFailed = 2_000_000

func newPacking(state *search, value chain.Share, nodes int) *packing {
	problem := state.problem
	pack := &packing{under: state, nodes: nodes, kinds: state.problem.BySize(), failed: make(map[string]bool), left: make([]int, len(problem.Kinds))}
	for device := range problem.Devices {
		pack.loads = append(pack.loads, problem.NewLoad(device))
		pack.caps = append(pack.caps, value.Below(problem.Devices[device].Budget))
		pack.order = append(pack.order, device)
	}
	for kind := range problem.Kinds {
		pack.left[kind] = len(problem.Kinds[kind].Items)
	}
	sizes := make([]int, len(problem.Devices))
	for device := range problem.Devices {
		sizes[problem.Devices[device].Like]++
	}
	slices.SortStableFunc(pack.order, func(x, y int) int {
		x, y = problem.Devices[x].Like, problem.Devices[y].Like
		if sizes[x] != sizes[y] {
			return sizes[x] - sizes[y]
		}
		return x - y
	})
	for i := range state.moments {
		free, gain := state.moments[i].Headroom(problem, pack.caps)
		from := make([]int64, len(pack.order)+1)
		from[len(pack.order)] = gain
		for at := len(pack.order) - 1; at >= 0; at-- {
			from[at] = from[at+1] + free[pack.order[at]]
		}
		pack.headroom = append(pack.headroom, from)
	}
	return pack
}

func (pack *packing) counts() [][]int {
	var out [][]int
	for _, load := range pack.loads {
		out = append(out, slices.Clone(load.Counts))
	}
	return out
}

// unfit returns the first moment at which the items left do not fit on the devices from order[i]
// on; −1 if there is none.
func (pack *packing) unfit(i int) int {
	for k := range pack.under.moments {
		var sum int64
		for kind, count := range pack.left {
			sum += int64(count) * pack.under.moments[k].Weight[kind]
		}
		if sum > pack.headroom[k][i] {
			return k
		}
	}
	return -1
}

// spent counts a node, and reports that the search must end.
func (pack *packing) spent() bool {
	const often = 256
	pack.nodes--
	if pack.nodes <= 0 || pack.nodes%often == 0 && pack.under.stopped() {
		pack.gaveUp = true
	}
	return pack.gaveUp
}
