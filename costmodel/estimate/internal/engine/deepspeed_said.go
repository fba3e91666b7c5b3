package engine

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
)

// warn notes DeepSpeed's own estimate, the host memory, and peaks outside the step.
func (sum *zeroSum) warn(table *costmodel.Table) {
	params := sum.model.Graph.ParamCount()
	if params == 0 {
		return // declared bytes alone: nothing for the estimator to count
	}
	sum.warnEstimator(table, params)
	if sum.set.OffloadOptimizer || sum.set.OffloadParams {
		pinned, pageable := sum.host()
		table.HostBytes = (pinned + pageable) * sum.model.Workload.World
		warn(table, "offload keeps %v of host memory a GPU, %v of it pinned (PyTorch rounds buffers up to powers of two): %v for %d GPUs", costmodel.Bytes(pinned+pageable), costmodel.Bytes(pinned), costmodel.Bytes(table.HostBytes), sum.model.Workload.World)
	}
	sum.warnOutside(table, params)
}

// warnEstimator compares the plan with what DeepSpeed's users calculate with.
func (sum *zeroSum) warnEstimator(table *costmodel.Table, params int64) {
	gpus := sum.model.Workload.World
	who, said := "ZeRO-2 estimator", zero2Estimate(params, gpus, sum.set.OffloadOptimizer)
	less := []string{"activations, logits and loss"}
	switch sum.stage {
	case 1:
		who += ", for gradients cut as well,"
		less = append(less, fmt.Sprintf("whole gradients (%v)", costmodel.Bytes(sum.whole*sum.summed)))
	case 3:
		who, said = "ZeRO-3 estimator", zero3Estimate(params, largestLayer(sum.model.Graph), gpus, sum.set.OffloadOptimizer, sum.set.OffloadParams)
		most := int64(0)
		for i := range table.Units {
			for k := range table.Units[i].Layers {
				step := &table.Units[i].Layers[k]
				most = max(most, step.GatheredForward, step.GatheredBackward)
			}
		}
		less = append(less, fmt.Sprintf("parameters gathered ahead of their use (up to %v, which stage3_max_live_parameters and stage3_max_reuse_distance limit)", costmodel.Bytes(most)))
	}
	if sum.set.Contiguous {
		size := sum.set.ReduceBucket * reducedAs(sum.model)
		when := "in every backward"
		if sum.stage == 3 {
			when = "throughout"
		}
		less = append(less, fmt.Sprintf("reduce_bucket_size (%v, %s)", costmodel.Bytes(size), when))
	}
	more := ""
	if sum.master && !sum.set.OffloadOptimizer {
		more = fmt.Sprintf("; it counts fp32 gradients throughout (%v), which are there in the optimizer's step alone", costmodel.Bytes(4*sum.part))
	}
	warn(table, "DeepSpeed's own %s says %v a GPU for the states: it leaves out %s%s", who, costmodel.Bytes(said), strings.Join(less, ", "), more)
}

// host is a rank's host memory. DeepSpeed's offload_optimizer moves optimizer tensors there (stage3.py,
// _setup_for_real_optimizer; stage_1_and_2.py, __init__). Its offload_param moves shards of all weights,
// frozen ones too (partition_parameters.py, _partition_param). The optimizer's own states are pageable.
func (sum *zeroSum) host() (pinned, pageable int64) {
	each := ops.WeightBytes(sum.model.Workload.Precision) // of masters
	lock := func(bytes int64, is bool) {
		if is {
			pinned += bytes
		} else {
			pageable += bytes
		}
	}
	if sum.set.OffloadOptimizer {
		state, _ := sum.model.Optimizer.State(nil, sum.part, each)
		pageable += state
		locked := !sum.set.PageableOptimizer
		lock(sum.part*each, locked)                   // gradients for the update
		lock(sum.part*each, locked && sum.stage != 3) // masters
		if sum.stage == 3 {
			lock(sum.part*sum.summed, locked) // reduced gradients
		} else {
			own := sum.firstPart()
			lock((sum.part+own.largest)*sum.grad, locked) // weights on their way back; gradients on their way here
			if sum.model.Workload.MicroBatches > 1 {
				lock(own.elements*sum.grad, locked) // their sum (async_accumulate_grad_in_cpu_via_gpu)
			}
		}
	}
	if sum.set.OffloadParams {
		lock(sum.parts, !sum.set.PageableParams)
	}
	return pinned, pageable
}

// warnOutside lists peaks outside the step: loading, saving, and evaluation that keeps the logits.
func (sum *zeroSum) warnOutside(table *costmodel.Table, params int64) {
	weights := costmodel.Bytes(params * sum.grad)
	ranks := sum.model.Workload.World
	if sum.stage < 3 {
		warn(table, "loading: each process of a host first reads the checkpoint into host memory: %v each, %v for %d", weights, costmodel.Bytes(params*sum.grad*ranks), ranks)
	} else {
		saved := fmt.Sprintf("saving 16-bit weights gathers %v in the host memory of rank 0", weights)
		if sum.model.Workload.DeepSpeed != nil && !sum.set.GatherOnSave {
			saved += " once stage3_gather_16bit_weights_on_model_save is true; it is not, so that save_16bit_model saves nothing"
		}
		warn(table, "%s; built outside deepspeed.zero.Init the model is whole in every process first: %v each, %v for %d", saved, weights, costmodel.Bytes(params*sum.grad*ranks), ranks)
	}
	var retained int64
	for i := range sum.model.Layers {
		if layer := &sum.model.Layers[i]; layer.Cost.Memory.Loss {
			retained = layer.Cost.Output
		}
	}
	if retained > 0 {
		warn(table, "an evaluation that keeps the logits (Trainer with compute_metrics and no eval_accumulation_steps) adds %v a GPU for every batch like this one", costmodel.Bytes(retained))
	}
}
