package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/devmap-dev/devmap/planner/chain"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Solve returns the best map it can prove or find in the time. An answer that
// fits on no device is an [*InfeasibleError]; constraints that contradict
// each other are a [*PatternError] or [*ConflictError], in a
// [*ContradictionError] where several are in it.
func Solve(ctx context.Context, p Problem, s Settings) (*Solution, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.TimeLimit, DefaultTimeLimit))
	defer cancel()
	switch p.Objective {
	case Time:
		sol, err := p.solveTime(ctx, s)
		if sol != nil {
			sol.Method = p.method()
		}
		return sol, p.contradicted(err)
	case Memory, "":
		sol, err := p.solveMemory(ctx, s)
		if err != nil && p.Offload != "" {
			sol, err = p.offload(ctx, s, sol, err)
		}
		if sol != nil {
			sol.Method = cmp.Or(sol.Method, p.method())
		}
		if err == nil {
			err = p.linked(sol.Map)
		}
		return sol, p.contradicted(err)
	}
	return nil, fmt.Errorf("planner: objective %q is unknown", p.Objective)
}

// solveMemory finds the smallest largest share.
func (p *Problem) solveMemory(ctx context.Context, s Settings) (*Solution, error) {
	if p.Costs.Workload.Strategy.Replicated() {
		return p.replicas()
	}
	if p.Anywhere && !p.piped() {
		return p.anywhere(ctx, s)
	}
	l, fixed, err := p.layout()
	if err != nil {
		return nil, err
	}
	if p.piped() && p.schedule().Chunks > 1 {
		return p.looped(ctx, l)
	}
	sol, err := l.solve(ctx, fixed, chain.Settings{Probes: s.Probes, Progress: s.Progress})
	if err != nil {
		return nil, l.explainConflict(err)
	}
	if err := sol.verify(p); err != nil {
		return nil, err
	}
	if sol.Value > 1 {
		return sol, p.infeasible(ctx, sol)
	}
	return sol, nil
}

// layout turns the problem into items, groups and their pins.
func (p *Problem) layout() (*layout, *pins, error) {
	joined, err := p.together()
	if err != nil {
		return nil, nil, err
	}
	l := newLayout(p, joined)
	fixed, err := l.pins()
	if err == nil && p.piped() {
		if err = l.checkStages(); err == nil {
			err = l.pinEnds(fixed)
		}
	}
	return l, fixed, err
}

func (p *Problem) check() error {
	if p.Graph == nil || p.Costs == nil || p.Topology == nil {
		return errors.New("planner: a problem needs Graph, Costs and Topology")
	}
	if len(p.Costs.Units) != len(p.Graph.Units) {
		return fmt.Errorf("planner: the table has %d units and the graph %d", len(p.Costs.Units), len(p.Graph.Units))
	}
	if err := finite(p.Costs); err != nil {
		return err
	}
	return p.Topology.Check()
}

// solve asks the chain solver, once more where an idle device's overhead alone
// came out as the largest share: then, with a model smaller than a context,
// idle devices count nothing.
func (l *layout) solve(ctx context.Context, fixed *pins, s chain.Settings) (*Solution, error) {
	r, err := chain.Solve(ctx, l.problem(fixed), s)
	if err != nil {
		return nil, err
	}
	if l.stages != nil {
		if err := l.fill(ctx, &r, fixed); err != nil {
			return nil, err
		}
		r.Optimal = r.Optimal && l.uniform()
		return l.solution(&r), nil
	}
	sol := l.solution(&r)
	if sol.Value > sol.largest()+tolerance {
		l.countNothingIdle()
		if r, err = chain.Solve(ctx, l.problem(fixed), s); err != nil {
			return nil, err
		}
		sol = l.solution(&r)
	}
	return sol, nil
}

// tolerance is the rounding of a share.
const tolerance = 1e-9

// largest is the largest share by the walk.
func (s *Solution) largest() float64 {
	var value float64
	for i := range s.Devices {
		value = max(value, s.Devices[i].Share())
	}
	return value
}

// solution turns cuts and group devices back into a map of units.
func (l *layout) solution(r *chain.Result) *Solution {
	m := make(devicemap.Map, len(l.groupOf))
	for d := range l.device {
		for _, u := range l.order[l.start[r.Cuts[d]]:l.start[r.Cuts[d+1]]] {
			m[u] = devicemap.Device(d)
		}
	}
	for g, units := range l.groups {
		for _, u := range units {
			m[u] = devicemap.Device(r.GroupDevice[g])
		}
	}
	sol := &Solution{
		Map: m, Devices: devicemap.Predict(l.p.Costs, l.p.Topology, m),
		Value: r.Value.Float(), LowerBound: r.LowerBound.Float(), Bound: string(r.Bound),
		Even: r.SquaresOptimal, Bottleneck: r.Bottleneck, Probes: r.Probes,
		Warnings: l.p.Costs.Warnings,
	}
	switch {
	case r.Optimal:
		sol.Status = Optimal
	case r.Stopped:
		sol.Status = LimitReached
	default:
		sol.Status = Feasible
	}
	if !sol.Even && sol.Status == Optimal {
		sol.Warnings = append(sol.Warnings, "the largest share is proved smallest; that the others are as even as they can be is not")
	}
	return sol
}

// verify re-checks the answer by the walk. A difference is a fault of ours,
// never the user's.
func (s *Solution) verify(p *Problem) error {
	r := devicemap.CheckMap(p.Graph, p.Costs, p.Topology, s.Map)
	for _, f := range r.Faults {
		if f.Kind != devicemap.DoesNotFit {
			return fmt.Errorf("planner: the solver's map fails the check (please report this): %s", f)
		}
	}
	if value := s.largest(); math.Abs(s.Value-value) > tolerance {
		return fmt.Errorf("planner: the solver says the largest share is %v, the walk %v (please report this)", s.Value, value)
	}
	return nil
}
