package planner

import (
	"math"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// answer is a map with what is known of it.
type answer struct {
	m devicemap.Map
	// step is the map's by the solver's own sums, NaN where it made none;
	// lower is one that no map within the caps is below. In seconds.
	step, lower float64
	bound       string
	// proved: all was looked at, or the step meets the bound, so that no such
	// map has a shorter one; even: nor, with that step, a smaller largest share.
	proved, even bool
	stopped      bool
	tried        int
	notes        []string
}

// timedSolution certifies an answer.
func (p *Problem) timedSolution(a *answer) (*Solution, error) {
	sol := &Solution{
		Map: a.m, Objective: Time, Even: a.even, Probes: a.tried, Warnings: append(append([]string{}, p.Costs.Warnings...), a.notes...),
	}
	if err := p.certify(sol, certificate.Claim{Value: a.step, LowerBound: a.lower, Bound: a.bound, Rounding: certificate.Sums, Stopped: a.stopped}); err != nil {
		return nil, err
	}
	if sol.Status == Optimal && !sol.Even {
		sol.Warnings = append(sol.Warnings, "the step is proved shortest; that no map with this step has a smaller largest share is not")
	}
	return sol, nil
}

// fallback is the memory answer where the search for a short step ended
// before it found a map; where that lacks links, so does every map found.
func (p *Problem) fallback(memory *Solution, a *answer) (*Solution, error) {
	if err := p.linked(memory.Map); err != nil {
		return nil, err
	}
	out := &answer{m: memory.Map, step: math.NaN(), stopped: true}
	if a != nil {
		out.lower, out.bound, out.notes, out.tried = a.lower, a.bound, a.notes, a.tried
	}
	return p.timedSolution(out)
}
