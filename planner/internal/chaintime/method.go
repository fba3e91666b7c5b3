// Package chaintime finds the device map with the shortest step if one device works at a time. This
// is naive model parallelism, the unpipelined baseline of Huang et al., GPipe, NeurIPS 2019, figure
// 2b. A step is then a sum of its parts, and a dynamic program over the chain and the order of
// devices minimizes it.
package chaintime

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Method implements [instance.Method].
type Method struct{}

// Serves implements [instance.Method].
func (Method) Serves(in *instance.Instance) bool {
	return in.Objective == instance.Time && !in.AnyAssignment && !in.Piped() && !in.Replicated()
}

// Why implements [instance.Method].
func (Method) Why(*instance.Instance) string {
	return "dynamic program over the chain and the order of devices: one GPU works at a time, so a step is the sum of its parts, and units and cuts add up"
}

// Solve implements [instance.Method].
func (method Method) Solve(ctx context.Context, in *instance.Instance, _ instance.Limits, _ *instance.Answer) (*instance.Answer, error) {
	if _, err := in.Items(); err != nil {
		return nil, err
	}
	if devices := Fewer(in); devices < len(in.Topology.Devices) {
		return onFewer(ctx, in, devices, method)
	}
	solver, err := newSequential(ctx, in, method)
	if err != nil {
		return nil, err
	}
	if solver == nil {
		out := instance.NoStep(nil, "fastest device")
		out.LowerBound, out.Stopped = fastest(in), true
		return out, instance.ErrNone
	}
	return solver.shortest(ctx)
}
