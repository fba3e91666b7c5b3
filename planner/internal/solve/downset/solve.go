// Package downset places a graph's nodes on devices in contiguous parts: every
// device takes the difference of two down-sets of the forward graph, as a
// pipeline's stages do.
//
// It is the dynamic program over down-sets of Tarnawski et al., "Efficient
// Algorithms for Device Placement of DNN Graph Operators" (NeurIPS 2020),
// with a limit on the loads that is raised until there is an answer: each limit
// infeasible over all down-sets is a lower bound. Its time grows with the pairs of
// down-sets that one device can hold within the limit, its memory with the
// down-sets alone (search.go, walk.go). Before that, the best cuts of a few
// linear extensions are a first answer (linear.go, oneorder.go, greedy.go).
//
// Where the down-sets are too many to list (grow.go), the program runs over those
// with the cheapest cuts, and then a local search cuts other linear extensions near
// the best answer's own (oneorder.go). The bounds left are the average load and the
// largest item.
package downset

import (
	"context"
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// Solve places the nodes so that the largest load is least, where each
// device takes the difference of two down-sets of the forward graph; backward
// nodes follow their group. Devices of all kinds may be at any place in the
// chain or unused.
//
// First the best cuts of a few linear extensions are found, exactly for each;
// then the whole lattice of down-sets is searched for anything better (see
// search), or, where there are more down-sets than memory is set aside for, those
// with cheap cuts. With a deadline of the context a local search takes what time is
// left: such an answer depends on the time, another is the same in every run. At the
// end of the context the best so far is returned, Stopped: greedy cuts of one linear
// extension at least, which wait for nothing. progress, if not nil, is called with
// every better value and bound.
//
// Errors: a *CycleError, an *InfeasibleError, the faults that Problem.Check
// reports, and the context's where it ends before anything is found, which
// is where an order of the nodes has no cuts within the capacities.
func Solve(ctx context.Context, problem *graph.Problem, progress func(largest, lowerBound float64)) (*graph.Solution, error) {
	return solveWithin(ctx, problem, progress, standard)
}

// standard are the limits of Solve.
var standard = limits{few: 100_000, some: 20_000, most: 1_000_000, states: 24 << 20}

// limits bound memory, and with it time.
type limits struct {
	// All down-sets are listed, for some 50 bytes each, where they are few;
	// else first a selection of some, and all only if they are not over most.
	few, some, most int
	// states of a search, of 12 bytes.
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

// maxCombinations bounds the states of one down-set.
const maxCombinations = 100_000

// contiguous is one call's work.
type contiguous struct {
	*order
	limits
	graph.Incumbent
	// full: a search had to end for lack of memory. single: the order is a
	// chain, which has one linear extension.
	full, single bool
}

// firstBounds are those that need no search.
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
