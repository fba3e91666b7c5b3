package anymemory

import (
	"slices"

	"github.com/devmap-dev/devmap/planner/internal/anywhere"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// greedy puts the largest items first, each where it raises the largest share
// least.
func (a *search) greedy() {
	order := a.bySize()
	for _, c := range order {
		for range a.problem.Kinds[c].Items {
			var to *anywhere.Load
			var least chain.Share
			for _, l := range a.loads {
				if !l.Allows(c) {
					continue
				}
				l.Add(c, 1)
				if s := l.Share(); to == nil || s.Cmp(least) < 0 {
					to, least = l, s
				}
				l.Add(c, -1)
			}
			to.Add(c, 1)
		}
	}
	a.keep()
}

// bySize lists the classes, those that need most by themselves first.
func (a *search) bySize() []int {
	need := make([]int64, len(a.problem.Kinds))
	order := make([]int, len(need))
	for c := range need {
		order[c] = c
		l := a.problem.NewLoad(max(0, a.problem.Kinds[c].Pin))
		l.Set(c, 1)
		need[c] = l.Need()
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
func (a *search) kick() {
	from := []*anywhere.Load{a.fullest(), a.loads[a.rng.IntN(len(a.loads))]}
	for range 2 + a.rng.IntN(3) {
		l, to := from[a.rng.IntN(2)], a.loads[a.rng.IntN(len(a.loads))]
		c := a.rng.IntN(max(1, len(a.problem.Kinds)))
		if len(a.problem.Kinds) == 0 || l.Counts[c] == 0 || !to.Allows(c) {
			continue
		}
		l.Add(c, -1)
		to.Add(c, 1)
	}
}
