// Package anyplace places a graph's nodes on devices in any way: a device's
// nodes need not be neighbours.
//
// Answers come from package downset, from simulated annealing (Kirkpatrick,
// Gelatt and Vecchi, Science 220, 1983; anneal.go) of all nodes or of a part of
// them (anew.go, join.go), and from dividing two devices' nodes, or a region of
// them, anew by dynamic programming (split.go, region.go); small problems are
// searched whole (exact.go). Bounds come from graph's prices, from boundcut and
// from boundprice, which finds the best answers of two like devices too, mostly
// with proof. The work is counted in steps, not seconds, so that without a
// deadline the answer is the same in every run.
package anyplace

import (
	"context"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// Solve places the nodes so that the largest load is least, groups together and
// within the capacities, wherever that puts them: a device's nodes need not be
// neighbours.
//
// Answers come from [downset.Solve], whose answer is the first, from simulated
// annealing, and from splitting two devices' nodes anew, the best way, by
// dynamic programming. The lower bound is the best of three: the average
// within the capacities of each kind together, the largest unit with its
// unavoidable transfers (a minimum cut) and the worth of sets (a linear
// program over all sets that one device could take). Where an answer meets it,
// the answer is optimal. With a deadline, of the context or by
// Settings.TimeLimit, Solve goes on until then while there is a gap, and returns
// the best so far, Stopped; without one the work is limited, so that it ends by
// itself.
//
// Errors: a *CycleError, an *InfeasibleError, the faults that Problem.Check
// reports, and the context's where it ends before anything is found. The
// *InfeasibleError says whether it is proven.
func Solve(ctx context.Context, problem *graph.Problem, set graph.Settings) (*graph.Solution, error) {
	if err := problem.Check(); err != nil {
		return nil, err
	}
	if err := problem.Acyclic(); err != nil {
		return nil, err
	}
	if err := graph.NewInstance(problem, problem.Groups()).Feasible(); err != nil {
		return nil, err
	}
	if set.TimeLimit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, set.TimeLimit)
		defer cancel()
	}
	smaller := trimmed(problem)
	call := newAnywhere(graph.NewInstance(smaller, smaller.Groups()), set)
	call.solve(ctx)
	sol, err := call.result(ctx)
	if err != nil {
		return nil, err
	}
	renumber(problem, smaller, sol.Place)
	return problem.Certify(sol, ctx.Err() != nil)
}

// anywhere is one call's work.
type anywhere struct {
	*netlist.Netlist
	graph.Incumbent
	best  []int32 // device of each item
	none  bool    // no assignment is within the capacities
	steps int     // of one run of annealing
	// row is the best contiguous answer, of the nodes, and moves what goes on with it.
	row                []int
	rowValue, rowBound float64
	moves              rowMoves
	// whole is what the last whole search for it took, and wholeSpent what all did but
	// the first.
	whole, wholeSpent time.Duration
	// spent is the time of the search for any assignment, rowSpent that of the contiguous
	// answer behind the first.
	spent, rowSpent time.Duration
}

func newAnywhere(in *graph.Instance, set graph.Settings) *anywhere {
	steps := annealSteps * min(len(in.Nodes), maxItems)
	call := &anywhere{Netlist: netlist.New(in), Incumbent: graph.NewIncumbent(in.Problem, set), steps: steps}
	call.moves = call.newRowMoves(2)
	return call
}

// take takes an assignment of the items if it is better by more than rounding.
func (call *anywhere) take(place []int32, largest float64, method string) {
	if largest < call.Answer.Value*(1-1e-12) && call.Take(call.Places(place), method) {
		call.best = append(call.best[:0], place...)
	}
}

// result is the answer, or why there is none.
func (call *anywhere) result(ctx context.Context) (*graph.Solution, error) {
	if call.best == nil {
		return nil, call.nothing(ctx)
	}
	return &call.Answer, nil
}

// nothing explains why there is no answer.
func (call *anywhere) nothing(ctx context.Context) error {
	if err := ctx.Err(); err != nil && !call.none {
		return fmt.Errorf("stopped before any assignment within the capacities was found: %w", err)
	}
	how := ""
	if call.none {
		how = ": every assignment was tried"
	}
	fault := call.TooLittle("not in parts that keep every capacity and run where they are" + how)
	fault.Unproved = !call.none
	return fault
}
