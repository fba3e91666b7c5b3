package anymemory

import (
	"github.com/devmap-dev/devmap/planner/internal/anywhere"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// greedy puts the largest items first, each where it raises the largest share
// least.
func (a *search) greedy() {
	order := a.problem.BySize()
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
