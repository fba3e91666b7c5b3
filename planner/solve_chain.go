package planner

import (
	"context"

	"github.com/devmap-dev/devmap/planner/chain"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// tolerance is the rounding of a share.
const tolerance = 1e-9

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
