package estimate

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// run is what an engine was measured doing.
type run struct {
	strategy costmodel.Strategy
	runtime  string
	mode     costmodel.Mode
}

// measured are the precisions of the runs in fixtures/measured, of each kind
// (TestMeasuredKinds checks the two against each other).
var measured = map[run][]costmodel.Precision{
	{costmodel.DeviceMap, value.Accelerate, costmodel.Train}: {costmodel.BF16True, costmodel.BF16Mixed},
	{costmodel.DeviceMap, value.Accelerate, costmodel.Infer}: {costmodel.BF16True},
	{costmodel.Pipeline, value.Torch, costmodel.Train}:       {costmodel.BF16True},
	{costmodel.DDP, value.Torch, costmodel.Train}:            {costmodel.BF16True, costmodel.BF16Mixed},
	{costmodel.DDP, value.Lightning, costmodel.Train}:        {costmodel.BF16True, costmodel.BF16Mixed, costmodel.FP32True},
	{costmodel.FSDP, value.Torch, costmodel.Train}:           {costmodel.BF16True, costmodel.BF16Mixed, costmodel.FP32True},
	{costmodel.FSDP, value.JAX, costmodel.Train}:             {costmodel.FP32True},
	{costmodel.HSDP, value.Torch, costmodel.Train}:           {costmodel.BF16True, costmodel.BF16Mixed},
	{costmodel.Zero1, value.DeepSpeed, costmodel.Train}:      {costmodel.BF16Mixed},
	{costmodel.Zero2, value.DeepSpeed, costmodel.Train}:      {costmodel.BF16Mixed},
	{costmodel.Zero3, value.DeepSpeed, costmodel.Train}:      {costmodel.BF16Mixed},
}

// measuredOptimizers are the trainings' optimizers: the first everywhere, the others in device
// maps.
var measuredOptimizers = []string{costmodel.AdamW, value.AdamW8bit, costmodel.SGD, value.SGDMomentum}

// Unmeasured names the part of a resolved workload that no measured run of its engine covers, so
// that its figures follow from the engine's code alone. Empty: covered, by any model, or load mode.
func Unmeasured(workload *costmodel.Workload) string {
	if workload.Mode == costmodel.Load {
		return ""
	}
	who := fmt.Sprintf("%s (%s)", workload.Strategy, workload.Runtime)
	precisions, ok := measured[run{workload.Strategy, workload.Runtime, workload.Mode}]
	doing := map[costmodel.Mode]string{costmodel.Infer: "inference", costmodel.Train: "training"}[workload.Mode]
	switch {
	case !ok:
		return fmt.Sprintf("%s in %s", who, doing)
	case !slices.Contains(precisions, workload.Precision):
		return fmt.Sprintf("%s in %s", who, workload.Precision)
	case workload.Mode != costmodel.Train:
		return ""
	}
	return unmeasuredTraining(workload, who)
}

// unmeasuredTraining names what no training under a measured strategy did.
func unmeasuredTraining(workload *costmodel.Workload, who string) string {
	known := measuredOptimizers
	if !workload.Strategy.Traits().Sequential {
		known = known[:1]
	}
	own := trainer.Of(workload.Preset).Path.Modules != "" // measured with their loss and recompute
	switch {
	case !slices.Contains(known, workload.Optimizer):
		return fmt.Sprintf("%s with %s", who, workload.Optimizer)
	case workload.Recompute == value.RecomputeSelective && !own:
		return fmt.Sprintf("%s with selective recompute", who)
	case workload.EMA && workload.Runtime != value.JAX:
		return fmt.Sprintf("%s with a moving average", who)
	case workload.Loss == value.LossTiled && (workload.Strategy == costmodel.DDP || workload.Strategy == costmodel.FSDP):
		return "" // fixtures/measured/presets_h200.jsonl
	case own && workload.Loss == value.LossChunked:
		return ""
	case workload.Loss != "" && workload.Loss != value.LossEager:
		return fmt.Sprintf("%s with a %s loss", who, workload.Loss)
	}
	return ""
}
