// Package stagememory finds the cuts of a pipeline with the smallest largest share of a budget. A
// stage's memory depends on its micro-batches in flight (Narayanan et al., SC 2021, §2.2). It may
// fall as the stage grows, if its last unit sends less. So with one stage per device, it uses a
// dynamic program over the cuts, not a greedy reach. With several stages per device, they count
// together, and it tries cuts.
package stagememory

import (
	"context"

	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Method implements [instance.Method].
type Method struct{}

// Serves implements [instance.Method].
func (Method) Serves(in *instance.Instance) bool {
	return in.Objective != instance.Time && in.Piped()
}

// Why implements [instance.Method].
func (Method) Why(in *instance.Instance) string {
	if in.Looped() {
		return "cuts by trial, as a GPU runs several stages: all cuts if they are few, else local search from two starts and from points near the best"
	}
	return "exact search of the stages: a dynamic program over the cuts, as one more unit can lower the memory of a stage; a bisection on lower bounds of stages prunes cuts"
}

// Solve implements [instance.Method].
func (Method) Solve(ctx context.Context, in *instance.Instance, limits instance.Limits, _ *instance.Answer) (*instance.Answer, error) {
	items, err := in.Items()
	if err != nil {
		return nil, err
	}
	peaks := instance.NewStagePeaks(items)
	if in.Looped() {
		return solveLooped(ctx, peaks, limits)
	}
	if limits.Below > 0 && peaks.Above(limits.Below) {
		return nil, instance.ErrNone
	}
	return items.SolveChain(ctx, peaks.Chain(), limits)
}

// TooLarge implements [instance.Sizer]. It names no unit if a device has several runs, as no unit
// is then alone.
func (Method) TooLarge(ctx context.Context, in *instance.Instance) (unit string, needs int64) {
	items, err := in.Items()
	if err != nil || in.Looped() {
		return "", 0
	}
	peaks := instance.NewStagePeaks(items)
	return items.TooLarge(ctx, func(device, a, b int, _ uint64) int64 { return peaks.Floor(device, a, b) }) // a longer stage may need less
}
