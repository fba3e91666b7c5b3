// Package chainmemory finds the device map in the order of the model with the smallest largest
// share of a budget. Ties go to the smallest sum of squared shares. The units are a chain, and each
// device takes one run of it; a group of tied units may be on any device. Package chain has the
// bisection and its proof. It also has a dynamic program for devmap's own engine, whose send
// buffers depend on the run.
package chainmemory

import (
	"context"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// Method implements [instance.Method].
type Method struct{}

// Serves implements [instance.Method].
func (Method) Serves(in *instance.Instance) bool {
	return in.Objective != instance.Time && !in.AnyAssignment && !in.Piped() && !in.Replicated()
}

// Why implements [instance.Method].
func (Method) Why(in *instance.Instance) string {
	if workload := &in.Costs.Workload; costmodel.StageRulesOf(workload.Runtime).Arena && workload.Mode != costmodel.Load {
		return "exact search of the chain: a dynamic program over the cuts, as a GPU may hold less with a unit more where its run then sends less; a bisection over what a run holds at least leaves out cuts that are on no better map"
	}
	return "exact search of the chain: each GPU takes one run of units in order, so a bisection over the largest share with a reach per GPU decides each target"
}

// Solve implements [instance.Method].
func (Method) Solve(ctx context.Context, in *instance.Instance, limits instance.Limits, _ *instance.Answer) (*instance.Answer, error) {
	items, err := in.Items()
	if err != nil {
		return nil, err
	}
	return Place(ctx, items, limits)
}

// Place calls the chain solver. If an idle device's overhead alone is the largest share, it calls
// it again without the overhead of idle devices. That happens for a model smaller than a CUDA
// context.
func Place(ctx context.Context, items *instance.Items, limits instance.Limits) (*instance.Answer, error) {
	peaks := instance.NewMapPeaks(items)
	answer, err := items.SolveChain(ctx, peaks.Chain(), limits)
	if err != nil {
		return nil, err
	}
	if _, share := instance.Fullest(devicemap.Predict(items.In.Costs, items.In.Topology, answer.Map)); answer.Value <= share+instance.Tolerance {
		return answer, nil
	}
	peaks.CountNothingIdle()
	return items.SolveChain(ctx, peaks.Chain(), limits)
}

// TooLarge implements [instance.Sizer].
func (Method) TooLarge(ctx context.Context, in *instance.Instance) (unit string, needs int64) {
	items, err := in.Items()
	if err != nil {
		return "", 0
	}
	return items.TooLarge(ctx, instance.NewMapPeaks(items).Floor) // a longer run may need less
}
