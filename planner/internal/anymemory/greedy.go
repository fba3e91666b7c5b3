package anymemory

import (
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// greedy puts the largest items first, each where it raises the largest share
// least.
func (a *anySearch) greedy() {
	order := a.bySize()
	for _, c := range order {
		for range a.sc.classes[c].items {
			var to *load
			var least chain.Share
			for _, l := range a.loads {
				if !l.allows(c) {
					continue
				}
				l.add(c, 1)
				if s := l.share(); to == nil || s.Cmp(least) < 0 {
					to, least = l, s
				}
				l.add(c, -1)
			}
			to.add(c, 1)
		}
	}
	a.keep()
}

// bySize lists the classes, those that need most by themselves first.
func (a *anySearch) bySize() []int {
	need := make([]int64, len(a.sc.classes))
	order := make([]int, len(need))
	for c := range need {
		order[c] = c
		l := a.sc.newLoad(max(0, a.sc.classes[c].pin))
		l.set(c, 1)
		need[c] = l.need()
	}
	slices.SortStableFunc(order, func(x, y int) int {
		switch {
		case need[x] > need[y]:
			return -1
		case need[x] < need[y]:
			return 1
		}
		return x - y
	})
	return order
}

// kick moves a few items of the fullest device, and of another, anywhere.
func (a *anySearch) kick() {
	from := []*load{a.fullest(), a.loads[a.rng.IntN(len(a.loads))]}
	for range 2 + a.rng.IntN(3) {
		l, to := from[a.rng.IntN(2)], a.loads[a.rng.IntN(len(a.loads))]
		c := a.rng.IntN(max(1, len(a.sc.classes)))
		if len(a.sc.classes) == 0 || l.counts[c] == 0 || !to.allows(c) {
			continue
		}
		l.add(c, -1)
		to.add(c, 1)
	}
}
