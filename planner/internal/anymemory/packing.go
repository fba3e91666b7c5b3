package anymemory

import (
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/anywhere"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// packing is a branch and bound for a map under given peaks: device by device,
// with all sets of items that leave no room for another (Martello and Toth,
// Knapsack Problems, 1990, §8.5: dominance). What was left over for the
// devices from some one on, and failed, is remembered.
type packing struct {
	under    *search
	loads    []*anywhere.Load
	caps     []int64
	order    []int     // of devices: those that stand alone first
	kinds    []int     // largest first
	left     []int     // items of each class that no device has yet
	headroom [][]int64 // per moment: room of the devices from order[i] on, and gain
	failed   map[string]bool
	nodes    int
	gaveUp   bool
}

// maxFailed bounds the memory of failures, about 100 B each.
const maxFailed = 2_000_000

func newPacking(a *search, v chain.Share, nodes int) *packing {
	s := a.problem
	q := &packing{under: a, nodes: nodes, kinds: a.problem.BySize(), failed: make(map[string]bool), left: make([]int, len(s.Kinds))}
	for d := range s.Devices {
		q.loads = append(q.loads, s.NewLoad(d))
		q.caps = append(q.caps, v.Below(s.Devices[d].Budget))
		q.order = append(q.order, d)
	}
	for c := range s.Kinds {
		q.left[c] = len(s.Kinds[c].Items)
	}
	alike := make([]int, len(s.Devices))
	for d := range s.Devices {
		alike[s.Devices[d].Like]++
	}
	slices.SortStableFunc(q.order, func(x, y int) int {
		x, y = s.Devices[x].Like, s.Devices[y].Like
		if alike[x] != alike[y] {
			return alike[x] - alike[y]
		}
		return x - y
	})
	for i := range a.moments {
		room, gain := a.moments[i].Headroom(s, q.caps)
		from := make([]int64, len(q.order)+1)
		from[len(q.order)] = gain
		for at := len(q.order) - 1; at >= 0; at-- {
			from[at] = from[at+1] + room[q.order[at]]
		}
		q.headroom = append(q.headroom, from)
	}
	return q
}

func (q *packing) counts() [][]int {
	var out [][]int
	for _, l := range q.loads {
		out = append(out, slices.Clone(l.Counts))
	}
	return out
}

// unfit is the first moment at which what is left does not fit on the devices
// from order[i] on; −1 where there is none.
func (q *packing) unfit(i int) int {
	for k := range q.under.moments {
		var sum int64
		for c, n := range q.left {
			sum += int64(n) * q.under.moments[k].Weight[c]
		}
		if sum > q.headroom[k][i] {
			return k
		}
	}
	return -1
}

// spent counts a node, and reports that the search must end.
func (q *packing) spent() bool {
	const often = 256
	q.nodes--
	if q.nodes <= 0 || q.nodes%often == 0 && q.under.stopped() {
		q.gaveUp = true
	}
	return q.gaveUp
}
