package planner

import (
	"context"
	"errors"

	"github.com/devmap-dev/devmap/costmodel/steptime"
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
	if n := p.fewerDevices(); n < len(p.Topology.Devices) {
		return &fewer{p, n}, nil
	}
	return newNaive(l, fixed)
}

// solveTime finds the shortest step among maps that fit. The memory answer
// says whether any does, and stands in where the time ends before another is
// found.
func (p *Problem) solveTime(ctx context.Context, s Settings) (*Solution, error) {
	if err := steptime.Check(p.Costs, p.Topology); err != nil {
		return nil, err
	}
	if err := p.finiteTimes(); err != nil {
		return nil, err
	}
	if p.Costs.Workload.Strategy.Traits().Replicated {
		return p.replicas(Time)
	}
	if p.Anywhere && !p.piped() {
		return p.timeAnywhere(ctx, s)
	}
	memory, failed := p.solveMemory(ctx, s)
	var inf *InfeasibleError
	if failed != nil && (!errors.As(failed, &inf) || equal(p.Topology) && (!p.piped() || !p.ordered())) {
		return nil, failed
	}
	return p.solveShortest(ctx, memory, failed)
}

// solveShortest is the map with the shortest step, or what the memory answer
// says where the search finds none or less.
func (p *Problem) solveShortest(ctx context.Context, memory *Solution, failed error) (*Solution, error) {
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
	if step := devicemap.StepSeconds(p.Costs, p.Topology, a.m); failed == nil && !a.proved && *devicemap.StepSeconds(p.Costs, p.Topology, memory.Map) < *step {
		return p.fallback(memory, a) // a search that was cut short may find less than there is
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
