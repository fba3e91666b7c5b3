package planner

import (
	"context"
	"errors"
	"slices"

	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// tolerance is the rounding of a share.
const tolerance = 1e-9

// claimed is an answer before it is certified.
type claimed struct {
	*Solution
	claim certificate.Claim
}

// sayUneven warns where the value is proved and what comes after it is not.
func (s *claimed) sayUneven() {
	if !s.Even && s.Status == Optimal {
		s.Warnings = append(s.Warnings, "the largest share is proved smallest; that the others are as even as they can be is not")
	}
}

// solve asks the chain solver, once more where an idle device's overhead alone
// came out as the largest share: then, with a model smaller than a context,
// idle devices count nothing.
func (l *layout) solve(ctx context.Context, fixed *pins, s chain.Settings) (*claimed, error) {
	r, err := chain.Solve(ctx, l.problem(fixed), s)
	var empty *chain.EmptyError
	switch {
	case errors.As(err, &empty):
		return nil, l.noStage(empty)
	case err != nil:
		return nil, err
	}
	sol := l.solution(&r)
	if l.stages == nil && sol.claim.Value > sol.LargestShare()+tolerance {
		l.countNothingIdle()
		if r, err = chain.Solve(ctx, l.problem(fixed), s); err != nil {
			return nil, err
		}
		sol = l.solution(&r)
	}
	return sol, nil
}

// solution turns cuts and group devices back into a map of units.
func (l *layout) solution(r *chain.Result) *claimed {
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
	return &claimed{
		&Solution{
			Map: m, Devices: devicemap.Predict(l.p.Costs, l.p.Topology, m),
			Even: r.SquaresOptimal, Bottleneck: r.Bottleneck, Probes: r.Probes, Warnings: slices.Clip(l.p.Costs.Warnings),
		},
		certificate.Claim{
			Value: r.Value.Float(), LowerBound: r.LowerBound.Float(), Bound: string(r.Bound),
			Rounding: certificate.Exact, Stopped: r.Stopped,
		},
	}
}
