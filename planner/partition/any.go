package partition

import (
	"context"
	"fmt"
	"math"
)

// Any places the nodes so that the largest load is least, groups together and
// within the capacities, wherever that puts them: a device's nodes need not be
// neighbours.
//
// Answers come from simulated annealing, and from splitting two devices'
// nodes anew, the best way, by dynamic programming. The lower bound is the
// best of three: the average, the largest unit with its unavoidable transfers
// (a minimum cut) and the worth of sets (a linear program over all sets that
// one device could take). Where an answer meets it, the answer is optimal. The
// work is limited, so Any ends by itself; a context or Settings.TimeLimit that
// ends sooner returns the best so far, Stopped.
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
	in := newInstance(p, p.groups())
	if err := in.feasible(); err != nil {
		return nil, err
	}
	if set.TimeLimit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, set.TimeLimit)
		defer cancel()
	}
	s := &anywhere{netlist: newNetlist(in), set: set, sol: Solution{Largest: math.Inf(1)}}
	s.solve(ctx)
	return s.finish(ctx)
}

// anywhere is one call's work.
type anywhere struct {
	*netlist
	set  Settings
	sol  Solution
	best []int32 // device of each item
	none bool    // no assignment is within the capacities
}

// raise takes a lower bound; rounding may have lifted it a little.
func (s *anywhere) raise(bound float64, why string) {
	if bound *= 1 - rounding; bound > s.sol.LowerBound || s.sol.Bound == "" {
		s.sol.LowerBound, s.sol.Bound = bound, why
		s.tell()
	}
}

// take takes an assignment that fits.
func (s *anywhere) take(place []int32, largest float64, method string) {
	if largest < s.sol.Largest*(1-1e-12) {
		s.best = append(s.best[:0], place...)
		s.sol.Largest, s.sol.Method = largest, method
		s.tell()
	}
}

func (s *anywhere) tell() {
	if s.set.Progress != nil {
		s.set.Progress(s.sol.Largest, s.sol.LowerBound)
	}
}

// proven: the bounds meet, but for rounding.
func (s *anywhere) proven() bool {
	return s.sol.Largest*(1-4*rounding) <= s.sol.LowerBound
}

// finish scores the answer by the definitions.
func (s *anywhere) finish(ctx context.Context) (*Solution, error) {
	if s.best == nil {
		return nil, s.nothing(ctx)
	}
	device := make([]int, len(s.best))
	for i, d := range s.best {
		device[i] = int(d)
	}
	s.sol.Place = s.places(device)
	_, largest, err := s.p.Score(s.sol.Place)
	if err != nil {
		return nil, fmt.Errorf("the answer breaks a rule: %w", err)
	}
	if math.Abs(largest-s.sol.Largest) > 1e-6*largest {
		return nil, fmt.Errorf("the answer's largest load is %v, and was found as %v", largest, s.sol.Largest)
	}
	s.sol.Largest = largest
	s.sol.Optimal = s.proven()
	s.sol.LowerBound = min(s.sol.LowerBound, largest)
	s.sol.Stopped = ctx.Err() != nil && !s.sol.Optimal
	return &s.sol, nil
}

// nothing explains why there is no answer.
func (s *anywhere) nothing(ctx context.Context) error {
	if err := ctx.Err(); err != nil && !s.none {
		return fmt.Errorf("stopped before any assignment within the capacities was found: %w", err)
	}
	e := &InfeasibleError{Size: sum(s.size)}
	for k, n := range s.count {
		if n > 0 {
			e.Capacity += float64(n) * s.capacity[k]
		}
	}
	how := "none was found, which is no proof"
	if s.none {
		how = "every assignment was tried"
	}
	e.Reason = fmt.Sprintf("the sizes sum to %.0f bytes of %.0f, but not in parts that keep every capacity and run where they are: %s",
		e.Size, e.Capacity, how)
	return e
}
