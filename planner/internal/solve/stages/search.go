package stages

// search looks for pipelines whose stages are differences of two sets of a
// family.
type search struct {
	problem  *Problem
	network  *web
	sets     *family
	capacity float64
	// fastest is the time of a set with the fastest choice of each node.
	fastest []float64
	// sends is what it takes to send from a set to what is outside it.
	sends []float64
	// views are by micro-batches in flight, made when asked for.
	views []*view
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

func newSearch(problem *Problem, network *web, sets *family) *search {
	within := &search{
		problem: problem, network: network, sets: sets, capacity: problem.Capacity, solved: make(map[stageKey]timeRange),
		met: make([]int32, sets.len()), transfers: make([]float64, sets.len()),
	}
	within.sends = within.sums(network.sent)
	within.fastest = within.sums(func(node int) float64 { time, _ := within.view(1).nodes[node].fastest(); return time })
	return within
}

func (within *search) view(stage int) *view {
	for len(within.views) < stage {
		within.views = append(within.views, newView(within.problem, len(within.views)+1))
	}
	return within.views[stage-1]
}

// sums adds a value of the nodes up over every set.
func (within *search) sums(of func(node int) float64) []float64 {
	value := make([]float64, len(within.network.order))
	for node := range value {
		value[node] = of(node)
	}
	sum := make([]float64, within.sets.len())
	for i := within.sets.len() - 1; i >= 0; i-- {
		// Every set stands after one that is larger by a node; the smaller it
		// is, the later it was found.
		if below := within.sets.below[i]; len(below) > 0 {
			sum[i] = sum[below[0].to] + value[below[0].node]
		}
	}
	return sum
}
