// Package anyplace places a graph's nodes on devices in any way: a device's
// nodes need not be neighbours.
//
// Answers come from package downset, from simulated annealing (Kirkpatrick,
// Gelatt and Vecchi, Science 220, 1983; anneal.go) and from dividing two
// devices' nodes anew by dynamic programming (split.go); small problems are
// searched whole (exact.go). Bounds come from graph's prices, from boundcut and
// from boundprice. The work is counted in steps, not seconds, so that without a
// deadline the answer is the same in every run.
package anyplace

import (
	"context"
	"fmt"

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
func Solve(ctx context.Context, p *graph.Problem, set graph.Settings) (*graph.Solution, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := p.Acyclic(); err != nil {
		return nil, err
	}
	if err := graph.NewInstance(p, p.Groups()).Feasible(); err != nil {
		return nil, err
	}
	if set.TimeLimit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, set.TimeLimit)
		defer cancel()
	}
	q := trimmed(p)
	s := newAnywhere(graph.NewInstance(q, q.Groups()), set)
	s.solve(ctx)
	sol, err := s.result(ctx)
	if err != nil {
		return nil, err
	}
	renumber(p, q, sol.Place)
	return p.Certify(sol, ctx.Err() != nil)
}

// anywhere is one call's work.
type anywhere struct {
	*netlist.Netlist
	graph.Incumbent
	best []int32 // device of each item
	none bool    // no assignment is within the capacities
}

func newAnywhere(in *graph.Instance, set graph.Settings) *anywhere {
	return &anywhere{Netlist: netlist.New(in), Incumbent: graph.NewIncumbent(in.Problem, set)}
}

// take takes an assignment of the items if it is better by more than rounding.
func (s *anywhere) take(place []int32, largest float64, method string) {
	if largest < s.Answer.Value*(1-1e-12) && s.Incumbent.Take(s.Places(place), method) {
		s.best = append(s.best[:0], place...)
	}
}

// result is the answer, or why there is none.
func (s *anywhere) result(ctx context.Context) (*graph.Solution, error) {
	if s.best == nil {
		return nil, s.nothing(ctx)
	}
	return &s.Answer, nil
}

// nothing explains why there is no answer.
func (s *anywhere) nothing(ctx context.Context) error {
	if err := ctx.Err(); err != nil && !s.none {
		return fmt.Errorf("stopped before any assignment within the capacities was found: %w", err)
	}
	how := ""
	if s.none {
		how = ": every assignment was tried"
	}
	e := s.Instance.TooLittle("not in parts that keep every capacity and run where they are" + how)
	e.Unproved = !s.none
	return e
}
