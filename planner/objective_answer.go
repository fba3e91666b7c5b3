package planner

import (
	"fmt"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

// answer is a map with what is known of it.
type answer struct {
	m devicemap.Map
	// lower is a step that no map within the caps is below, in seconds.
	lower float64
	bound string
	// proved: no such map has a shorter step; even: nor, with that step, a
	// smaller largest share.
	proved, even bool
	stopped      bool
	tried        int
	notes        []string
}

// timedSolution re-scores an answer by the walk and by StepSeconds, which
// share no code with the solver.
func (p *Problem) timedSolution(a *answer) (*Solution, error) {
	sol := &Solution{
		Map: a.m, Devices: devicemap.Predict(p.Costs, p.Topology, a.m), Bound: a.bound,
		LowerBound: a.lower, Even: a.even, Probes: a.tried, Warnings: append(append([]string{}, p.Costs.Warnings...), a.notes...),
	}
	sol.asTime(p)
	switch {
	case a.proved:
		sol.Status, sol.LowerBound = Optimal, sol.Value
	case a.stopped:
		sol.Status = LimitReached
	default:
		sol.Status = Feasible
	}
	sol.LowerBound = min(sol.LowerBound, sol.Value)
	for _, f := range devicemap.CheckMap(p.Graph, p.Costs, p.Topology, a.m).Faults {
		return nil, fmt.Errorf("planner: the solver's map fails the check (please report this): %s", f)
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
	out := &answer{m: memory.Map, stopped: true}
	if a != nil {
		out.lower, out.bound, out.notes, out.tried = a.lower, a.bound, a.notes, a.tried
	}
	return p.timedSolution(out)
}

// asTime makes the step the value of a solution.
func (s *Solution) asTime(p *Problem) {
	s.Objective = Time
	s.Value = *devicemap.StepSeconds(p.Costs, p.Topology, s.Map)
	s.Bottleneck = 0
	for d := range s.Devices {
		if s.Devices[d].Share() > s.Devices[s.Bottleneck].Share() {
			s.Bottleneck = d
		}
	}
	if s.Map == nil {
		s.LowerBound = s.Value
	}
}

// LargestShare is the largest share of a budget, whatever the objective.
func (s *Solution) LargestShare() float64 { return s.largest() }
