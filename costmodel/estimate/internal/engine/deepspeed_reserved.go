package engine

import (
	"sync"

	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/reserve"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
)

// once calls follow at most once, on the first request: each device of a plan asks.
func once(follow func() [][2]int64) func([]int, bool) [][2]int64 {
	followed := sync.OnceValue(follow)
	return func([]int, bool) [][2]int64 { return followed() }
}

// marks are the most bytes of a rank's allocator in each micro-batch of the first steps; nil if the
// model's tensors are not followed.
func marks(model *layers.Model) [][2]int64 {
	decoder, ok := reserve.Follow(model)
	if !ok {
		return nil
	}
	stage := model.Workload.Strategy.Traits().ZeroStage
	set := settingsOf(&model.Workload)
	each := ops.WeightBytes(model.Workload.Precision)
	state, _ := model.Optimizer.State(nil, 1024, each)
	rank := reserve.ZeRO{
		Settings: set, Ranks: model.Workload.ShardDegree, Grad: ops.WeightBytes(model.Rules.Compute), Master: each,
		States: state / (1024 * each), MicroBatches: int(min(3, max(1, model.Workload.MicroBatches))), Steps: 3,
	}
	rank.Summed = rank.Grad
	if set.FP32Gradients {
		rank.Summed = 4
	}
	if stage == 3 {
		root, trace := modulesOf(model, set.Persistence)
		run := hooksOf(root, trace, true, model.Recomputes)
		rank.Trace = trace
		rank.Called = func(layer int, module string, ends, backward bool, from int) (int, bool) {
			for at := from; at < len(run.called); at++ {
				step := &trace.Steps[at]
				if run.called[at] == (call{layer, module}) && step.Ends == ends && step.Backward == backward {
					return at, true
				}
			}
			return 0, false
		}
	}
	return rank.Simulate(decoder)
}
