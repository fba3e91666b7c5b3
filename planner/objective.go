package planner

import (
	"context"
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Objective is what is minimised.
type Objective string

// The objectives.
const (
	// Memory is the largest share of a budget, then the sum of squared shares.
	Memory Objective = "memory"
	// Time is the predicted time of a step, in seconds, among maps that fit;
	// then the largest share, the bytes that cross, and the number of cuts.
	Time Objective = "time"
)

// timed is a solver of steps: what a device map and a pipeline have in common.
type timed interface {
	// shortest is the map with the shortest step, of those the one with the
	// smallest largest share, where every peak is within the caps (bytes, by
	// device); nil where there is none or none was found.
	shortest(ctx context.Context, caps []int64) (*answer, error)
}

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

// errNone says that no map within the caps exists, or was found.
var errNone = errors.New("planner: no map within the caps")

// timedSolver is that of the problem's strategy.
func (p *Problem) timedSolver(ctx context.Context) (timed, error) {
	l, fixed, err := p.layout()
	if err != nil {
		return nil, err
	}
	if p.piped() {
		return newPiped(ctx, l)
	}
	return newTurns(l, fixed)
}

// solveTime finds the shortest step among maps that fit. The memory answer
// says whether any does, and stands in where the time ends before another is
// found.
func (p *Problem) solveTime(ctx context.Context, s Settings) (*Solution, error) {
	if err := p.Costs.Timed(p.Topology); err != nil {
		return nil, err
	}
	if p.Costs.Workload.Strategy.Replicated() {
		sol, err := p.replicas()
		if err == nil {
			sol.asTime(p)
		}
		return sol, err
	}
	if p.Anywhere {
		return nil, &costmodel.TimeError{Msg: "the shortest step is searched among contiguous maps: --contiguous=false goes with --objective memory"}
	}
	memory, failed := p.solveMemory(ctx, s)
	var inf *InfeasibleError
	if failed != nil && (!errors.As(failed, &inf) || equal(p.Topology)) {
		return nil, failed
	}
	solver, err := p.timedSolver(ctx)
	if err != nil {
		return nil, err
	}
	a, err := solver.shortest(ctx, p.caps(1))
	switch {
	case errors.Is(err, errNone) && failed != nil:
		return memory, failed
	case errors.Is(err, errNone):
		return p.fallback(memory, a)
	case err != nil:
		return nil, err
	}
	return p.timedSolution(a)
}

// caps are the peaks whose share is at most s, to the nearest byte: a share
// that was a quotient of integers gives its peak again.
func (p *Problem) caps(s float64) []int64 {
	out := make([]int64, len(p.Topology.Devices))
	for d := range out {
		out[d] = int64(s*float64(p.Topology.Devices[d].Budget()) + 0.5)
	}
	return out
}

// capsBelow are the peaks whose share is less than s, and within other caps.
func (p *Problem) capsBelow(s float64, caps []int64) []int64 {
	out := p.caps(s)
	for d := range out {
		if float64(out[d]) >= s*float64(p.Topology.Devices[d].Budget())*(1-1e-15) {
			out[d]--
		}
		out[d] = min(out[d], caps[d])
	}
	return out
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
