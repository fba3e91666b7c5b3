package estimate

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/engine"
)

// run is what an engine was measured doing.
type run struct {
	strategy costmodel.Strategy
	runtime  costmodel.Runtime
	mode     costmodel.Mode
}

// measured are the precisions of the runs in fixtures/measured, of each kind
// (TestMeasuredKinds holds the two to each other).
var measured = map[run][]costmodel.Precision{
	{costmodel.DeviceMap, costmodel.Accelerate, costmodel.Train}: {costmodel.BF16True, costmodel.BF16Mixed},
	{costmodel.DeviceMap, costmodel.Accelerate, costmodel.Infer}: {costmodel.BF16True},
	{costmodel.Pipeline, costmodel.Torch, costmodel.Train}:       {costmodel.BF16True},
	{costmodel.DDP, costmodel.Torch, costmodel.Train}:            {costmodel.BF16True, costmodel.BF16Mixed},
	{costmodel.DDP, costmodel.Lightning, costmodel.Train}:        {costmodel.BF16True, costmodel.BF16Mixed, costmodel.FP32True},
	{costmodel.FSDP, costmodel.Torch, costmodel.Train}:           {costmodel.BF16True, costmodel.BF16Mixed, costmodel.FP32True},
	{costmodel.HSDP, costmodel.Torch, costmodel.Train}:           {costmodel.BF16True, costmodel.BF16Mixed},
	{costmodel.Zero1, costmodel.DeepSpeed, costmodel.Train}:      {costmodel.BF16Mixed},
	{costmodel.Zero2, costmodel.DeepSpeed, costmodel.Train}:      {costmodel.BF16Mixed},
	{costmodel.Zero3, costmodel.DeepSpeed, costmodel.Train}:      {costmodel.BF16Mixed},
}

// measuredOptimizers are those of the trainings: the first everywhere, the
// others under device maps.
var measuredOptimizers = []costmodel.Optimizer{costmodel.AdamW, costmodel.AdamW8bit, costmodel.SGD, costmodel.SGDMomentum}

// Unmeasured names what a resolved workload asks of an engine that no run was
// measured doing, so that its figures rest on the engine's code alone. Empty
// where there is such a run, of any model, or nothing runs.
func Unmeasured(w *costmodel.Workload) string {
	if w.Mode == costmodel.Load {
		return ""
	}
	who := fmt.Sprintf("%s (%s)", w.Strategy, w.Runtime)
	precisions, ok := measured[run{w.Strategy, w.Runtime, w.Mode}]
	doing := map[costmodel.Mode]string{costmodel.Infer: "inference", costmodel.Train: "training"}[w.Mode]
	switch {
	case !ok:
		return fmt.Sprintf("%s in %s", who, doing)
	case !slices.Contains(precisions, w.Precision):
		return fmt.Sprintf("%s in %s", who, w.Precision)
	case w.Mode != costmodel.Train:
		return ""
	}
	known := measuredOptimizers
	if !w.Strategy.Traits().Sequential {
		known = known[:1]
	}
	switch {
	case !slices.Contains(known, w.Optimizer):
		return fmt.Sprintf("%s with %s", who, w.Optimizer)
	case w.Recompute == costmodel.RecomputeSelective:
		return fmt.Sprintf("%s with selective recompute", who)
	case w.EMA:
		return fmt.Sprintf("%s with a moving average", who)
	case w.Loss == costmodel.LossChunked || w.Loss == costmodel.LossFused:
		return fmt.Sprintf("%s with a %s loss", who, w.Loss)
	}
	return ""
}

// Advice is what is known of an engine that is not built, for those who ask
// for it; empty of others.
func Advice(runtime costmodel.Runtime) string { return engine.Advice(runtime) }
