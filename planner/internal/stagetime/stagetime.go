// Package stagetime finds the cuts of a pipeline with the shortest step. It is a branch and bound
// over the cuts, for each order of unequal devices. The bounds are waits that every schedule has
// (Narayanan et al., SC 2021, §2.2, for stages that differ). If a device runs several stages, it
// moves cuts as long as that helps.
package stagetime

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Method implements [instance.Method].
type Method struct{}

// Serves implements [instance.Method].
func (Method) Serves(in *instance.Instance) bool {
	return in.Objective == instance.Time && in.Piped()
}

// Why implements [instance.Method].
func (Method) Why(in *instance.Instance) string {
	if in.Looped() {
		return "search for better cuts: GPUs run several stages in turn, so that a step is no sum over them"
	}
	return "branch and bound over the cuts of the stages, for each order of unequal devices: a step depends on all stages together, so it is bounded and not added up"
}

// Solve implements [instance.Method].
func (Method) Solve(ctx context.Context, in *instance.Instance, limits instance.Limits, _ *instance.Answer) (*instance.Answer, error) {
	items, err := in.Items()
	if err != nil {
		return nil, err
	}
	if len(in.Topology.Devices) > instance.MaxTimed/max(1, items.Count()+1) {
		return instance.NoStep([]string{"the units and devices are too many for a search for a shorter step: the map is that of the memory objective"}, "none"), instance.ErrNone
	}
	const many = 1 << 17 // items × devices: their sums take long, so start them early or not at all
	if len(in.Topology.Devices)*items.Count() > many && ctx.Err() != nil {
		out := instance.NoStep(nil, "work")
		out.Stopped = true
		return out, instance.ErrNone
	}
	solver, err := newPipes(ctx, in)
	if err != nil {
		return nil, err
	}
	return solver.shortest(ctx, in.Caps, limits)
}
