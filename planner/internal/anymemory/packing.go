package anymemory

import (
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// packing is a branch and bound for a map under given peaks: device by device,
// with all sets of items that leave no room for another (Martello and Toth,
// Knapsack Problems, 1990, §8.5: dominance). What was left over for the
// devices from some one on, and failed, is remembered.
type packing struct {
	a       *anySearch
	loads   []*load
	caps    []int64
	order   []int     // of devices: those that stand alone first
	classes []int     // largest first
	left    []int     // items of each class that no device has yet
	rooms   [][]int64 // per moment: room of the devices from order[i] on, and gain
	failed  map[string]bool
	nodes   int
	gaveUp  bool
}

// mostFailed bounds the memory of failures, about 100 B each.
const mostFailed = 2_000_000

func (s *Scatter) newPacking(a *anySearch, v chain.Share, nodes int) *packing {
	q := &packing{a: a, nodes: nodes, classes: a.bySize(), failed: make(map[string]bool), left: make([]int, len(s.classes))}
	for d := range s.Bins {
		q.loads = append(q.loads, s.newLoad(d))
		q.caps = append(q.caps, below(v, s.Bins[d].Budget))
		q.order = append(q.order, d)
	}
	for c := range s.classes {
		q.left[c] = len(s.classes[c].items)
	}
	alike := make([]int, len(s.Bins))
	for d := range s.Bins {
		alike[s.Bins[d].Like]++
	}
	slices.SortStableFunc(q.order, func(x, y int) int {
		x, y = s.Bins[x].Like, s.Bins[y].Like
		if alike[x] != alike[y] {
			return alike[x] - alike[y]
		}
		return x - y
	})
	for i := range a.moments {
		room, gain := a.moments[i].Rooms(s, q.caps)
		from := make([]int64, len(q.order)+1)
		from[len(q.order)] = gain
		for at := len(q.order) - 1; at >= 0; at-- {
			from[at] = from[at+1] + room[q.order[at]]
		}
		q.rooms = append(q.rooms, from)
	}
	return q
}

func (q *packing) counts() [][]int {
	var out [][]int
	for _, l := range q.loads {
		out = append(out, slices.Clone(l.counts))
	}
	return out
}

// unfit is the first moment at which what is left does not fit on the devices
// from order[i] on; −1 where there is none.
func (q *packing) unfit(i int) int {
	for k := range q.a.moments {
		var sum int64
		for c, n := range q.left {
			sum += int64(n) * q.a.moments[k].Weight[c]
		}
		if sum > q.rooms[k][i] {
			return k
		}
	}
	return -1
}

// spent counts a node, and reports that the search must end.
func (q *packing) spent() bool {
	const often = 256
	q.nodes--
	if q.nodes <= 0 || q.nodes%often == 0 && q.a.stopped() {
		q.gaveUp = true
	}
	return q.gaveUp
}
