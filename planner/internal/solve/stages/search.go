package stages

import (
	"github.com/devmap-dev/devmap/planner/internal/solve/lattice"
	"github.com/devmap-dev/devmap/planner/internal/solve/multichoice"
)

// search looks for pipelines whose stages are differences of two sets of a
// family.
type search struct {
	problem  *Problem
	network  *web
	sets     *lattice.Family
	capacity float64
	// fastest is the time of a set with the fastest choice of each node.
	fastest []float64
	// sends is what it takes to send from a set to what is outside it.
	sends []float64
	// views are by micro-batches in flight, made when asked for.
	views []*multichoice.View
	// solved keeps what the exact knapsack gave.
	solved map[stageKey]timeRange
	// The walk below one set: when a set was last met, and the transfers of
	// the stage between the two.
	met       []int32
	walk      int32
	transfers []float64
	stack     []int32
}

type (
	stageKey  struct{ upper, lower, y int32 }
	timeRange struct{ lower, upper float64 }
)

func newSearch(problem *Problem, network *web, sets *lattice.Family) *search {
	within := &search{
		problem: problem, network: network, sets: sets, capacity: problem.Capacity, solved: make(map[stageKey]timeRange),
		met: make([]int32, sets.Len()), transfers: make([]float64, sets.Len()),
	}
	within.sends = within.sums(network.sent)
	within.fastest = within.sums(func(node int) float64 { time, _ := within.view(1).Nodes[node].Fastest(); return time })
	return within
}

// view is the nodes as the stage sees them that has so many micro-batches in
// flight.
func (within *search) view(stage int) *multichoice.View {
	for len(within.views) < stage {
		within.views = append(within.views, newView(within.problem, len(within.views)+1))
	}
	return within.views[stage-1]
}

func newView(problem *Problem, stage int) *multichoice.View {
	return multichoice.NewView(len(problem.Nodes), func(node int) []multichoice.Option {
		var options []multichoice.Option
		for _, choice := range problem.Nodes[node].Choices {
			options = append(options, multichoice.Option{Time: choice.Time, Memory: float64(stage)*choice.InFlight + choice.Fixed})
		}
		return options
	})
}

// sums adds a value of the nodes up over every set.
func (within *search) sums(of func(node int) float64) []float64 {
	return within.sets.Sums(len(within.network.Order), of)
}
