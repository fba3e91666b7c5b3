package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
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
	if p.Costs.Workload.Strategy.Traits().Replicated {
		return p.replicas(Memory)
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
	if err := p.certify(sol.Solution, sol.claim); err != nil {
		return nil, err
	}
	sol.sayUneven()
	if sol.Value > 1 {
		return sol.Solution, p.infeasible(ctx, sol.Solution)
	}
	return sol.Solution, nil
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
