// Package downset places a graph's nodes on devices in contiguous parts. Every device takes the
// difference of two down-sets of the forward graph, like the stages of a pipeline.
//
// It is the dynamic program over down-sets of Tarnawski et al., "Efficient Algorithms for Device
// Placement of DNN Graph Operators" (NeurIPS 2020). A limit on the loads rises until there is an
// answer, and each limit that is infeasible over all down-sets is a lower bound. The time grows
// with the pairs of down-sets that one device can take within the limit, the memory with the number
// of down-sets (search.go, walk.go). The first answer is the best cuts of a few linear extensions
// (linear.go, oneorder.go, greedy.go).
//
// If there are too many down-sets to list (grow.go), the program uses those with the cheapest cuts.
// A local search then cuts linear extensions near that of the best answer (oneorder.go). The only
// bounds are then the average load and the largest item.
package downset

import (
	"context"
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// Solve places the nodes with the least largest load. Each device takes the difference of two
// down-sets of the forward graph; backward nodes follow their group. Devices of all kinds may be at
// any place in the chain or unused.
//
// First it finds the best cuts of a few linear extensions, exactly for each. Then it searches all
// down-sets for a better answer (see search), or those with cheap cuts if all need too much memory.
// If ctx has a deadline, a local search takes the remaining time, so answers depend on the time.
// Without a deadline every run gives the same answer. When ctx ends, Solve returns the best answer
// so far with Stopped set. It has at least greedy cuts of one linear extension, which ignore ctx.
// progress, if not nil, is called with every better value and bound.
//
// Errors are a *CycleError, an *InfeasibleError, and the faults that Problem.Check reports. The
// error is the context's if it ends before any answer: an order of the nodes then has no cuts
// within the capacities.
func Solve(ctx context.Context, problem *graph.Problem, progress func(largest, lowerBound float64)) (*graph.Solution, error) {
	return solveWithin(ctx, problem, progress, standard)
}

// standard are the limits of Solve.
var standard = limits{few: 100_000, some: 20_000, most: 1_000_000, states: 24 << 20}

// limits bounds memory, and so time.
type limits struct {
	// Down-sets take about 50 bytes each. Up to few, all are listed. Otherwise a selection of some
	// comes first, and all follow only if there are at most most.
	few, some, most int
	// states of a search take 12 bytes each.
	states int
}

func solveWithin(ctx context.Context, problem *graph.Problem, progress func(largest, lowerBound float64), most limits) (*graph.Solution, error) {
	if err := problem.Check(); err != nil {
		return nil, err
	}
	if len(problem.Kinds) > maxKinds {
		return nil, fmt.Errorf("%d kinds of devices; a contiguous placement takes at most %d", len(problem.Kinds), maxKinds)
	}
	ordered, err := newOrder(problem, true)
	if err != nil {
		return nil, err
	}
	combinations := 1.0
	for _, kind := range problem.Kinds {
		combinations *= float64(min(kind.Count, len(ordered.Nodes)) + 1)
	}
	if combinations > maxCombinations {
		return nil, fmt.Errorf("%.0f combinations of devices of %d kinds; a contiguous placement takes at most %d", combinations-1, len(problem.Kinds), maxCombinations)
	}
	if err := ordered.Feasible(); err != nil {
		return nil, err
	}
	call := &contiguous{order: ordered, limits: most, Incumbent: graph.NewIncumbent(problem, progress)}
	call.firstBounds()
	err = call.solve(ctx)
	stopped := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errFull)
	if err != nil && !stopped {
		return nil, err
	}
	if call.Answer.Place == nil {
		return nil, fmt.Errorf("stopped before any placement was found: %w", err)
	}
	if call.full && !call.Proven() {
		call.Answer.Method += fmt.Sprintf("; a search of all down-sets needs more than the %d states that memory is set aside for", call.states)
	}
	return problem.Certify(&call.Answer, stopped)
}

// maxCombinations is the most states of one down-set.
const maxCombinations = 100_000

// contiguous is the work of one Solve.
type contiguous struct {
	*order
	limits
	graph.Incumbent
	// full: a search ended for lack of memory. single: the order is a chain, which has one linear
	// extension.
	full, single bool
}

// firstBounds computes the bounds that need no search.
func (call *contiguous) firstBounds() {
	sizes := call.Size
	if call.loose != nil {
		sizes = call.loose // a leaf may be elsewhere
	}
	_, average := call.Average(call.EveryKind(), sizes)
	item, time := call.LargestItem()
	call.Raise(average, graph.ByAverage)
	call.Raise(time, fmt.Sprintf("largest item: %s alone", graph.Named(call.Names(item))))
}
