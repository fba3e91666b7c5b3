package assignmemory

import (
	"github.com/devmap-dev/devmap/planner/internal/assignment"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// greedy places the largest items first, each on the device where the largest share rises least.
func (state *search) greedy() {
	order := state.problem.BySize()
	for _, kind := range order {
		for range state.problem.Kinds[kind].Items {
			var to *assignment.Load
			var least chain.Share
			for _, load := range state.loads {
				if !load.Allows(kind) {
					continue
				}
				load.Add(kind, 1)
				if share := load.Share(); to == nil || share.Cmp(least) < 0 {
					to, least = load, share
				}
				load.Add(kind, -1)
			}
			to.Add(kind, 1)
		}
	}
	state.keep()
}
