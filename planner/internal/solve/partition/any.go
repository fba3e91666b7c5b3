package partition

import (
	"context"
	"fmt"
)

// Any places the nodes so that the largest load is least, groups together and
// within the capacities, wherever that puts them: a device's nodes need not be
// neighbours.
//
// Answers come from [Contiguous], whose answer is the first, from simulated
// annealing, and from splitting two devices' nodes anew, the best way, by
// dynamic programming. The lower bound is the best of three: the average
// within the capacities of each kind together, the largest unit with its
// unavoidable transfers (a minimum cut) and the worth of sets (a linear
// program over all sets that one device could take). Where an answer meets it,
// the answer is optimal. With a deadline, of the context or by
// Settings.TimeLimit, Any goes on until then while there is a gap, and returns
// the best so far, Stopped; without one the work is limited, so that it ends by
// itself.
//
// Errors: a *CycleError, an *InfeasibleError, the faults that Problem.Check
// reports, and the context's where it ends before anything is found. The *InfeasibleError
// says whether it is proven.
func Any(ctx context.Context, p *Problem, set Settings) (*Solution, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if err := p.acyclic(); err != nil {
		return nil, err
	}
	if err := newInstance(p, p.groups()).feasible(); err != nil {
		return nil, err
	}
	if set.TimeLimit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, set.TimeLimit)
		defer cancel()
	}
	q := p.trimmed()
	s := newAnywhere(newInstance(q, q.groups()), set)
	s.solve(ctx)
	sol, err := s.result(ctx)
	if err != nil {
		return nil, err
	}
	p.renumber(q, sol.Place)
	return p.certify(sol, ctx.Err() != nil)
}

// anywhere is one call's work.
type anywhere struct {
	*netlist
	certificate
	best []int32 // device of each item
	none bool    // no assignment is within the capacities
}

func newAnywhere(in *instance, set Settings) *anywhere {
	return &anywhere{netlist: newNetlist(in), certificate: newCertificate(in.p, set)}
}

// take takes an assignment of the items if it is better by more than rounding.
func (s *anywhere) take(place []int32, largest float64, method string) {
	if largest < s.sol.Largest*(1-1e-12) && s.certificate.take(s.places(place), method) {
		s.best = append(s.best[:0], place...)
	}
}

// result is the answer, or why there is none.
func (s *anywhere) result(ctx context.Context) (*Solution, error) {
	if s.best == nil {
		return nil, s.nothing(ctx)
	}
	return &s.sol, nil
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
	e := s.instance.nothing("not in parts that keep every capacity and run where they are" + how)
	e.Unproved = !s.none
	return e
}
