package engine

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
)

// step is the optimizer's temporary memory (stage_1_and_2.py and stage3.py, step). First come norms,
// each gradient in fp64 (zero/utils.py, get_norm_dtype). Then the rank's gradients are joined, and
// copied to fp32 under mixed precision. The 16-bit ones are freed, and the optimizer runs. ZeRO 3 does
// so for sub_group_size elements at a time. The first rank's shard is the largest in ZeRO 1 and 2.
func (sum *zeroSum) step() int64 {
	if sum.set.OffloadOptimizer {
		return 0
	}
	group, largest := sum.part, sum.largest
	var retained int64
	if sum.stage == 3 {
		if len(sum.groups) > 0 {
			group = slices.Max(sum.groups)
		}
	} else {
		part := sum.firstPart()
		largest = part.piece
		retained = part.elements * sum.summed
		if sum.set.FP32Gradients {
			retained = group * sum.summed
		}
	}
	flat, fp32 := group*sum.grad, int64(0)
	if sum.master {
		fp32 = 4 * group
	}
	updating := max(flat, fp32) + sum.transient*group/max(1, sum.part) - retained
	peak := retained + max(8*min(group, largest), flat+fp32, updating)
	switch {
	case sum.stage == 1 && !sum.set.Overlap: // the walk still counts all ranks' gradients
		peak -= sum.whole * sum.summed
	case sum.stage == 2 && sum.model.Workload.MicroBatches > 1: // held throughout
		peak -= retained
	}
	return max(0, peak)
}

// group adds a tensor's shard to those that are updated together: in ZeRO 3 a tensor that fills a
// group ends it (stage3.py, _create_fp16_sub_groups).
func (sum *zeroSum) group(part int64) {
	last := len(sum.groups) - 1
	if last < 0 || sum.stage == 3 && sum.groups[last] >= sum.set.SubGroup {
		sum.groups, last = append(sum.groups, 0), last+1
	}
	sum.groups[last] += part
}

// rounding is the allocator's rounding of a rank's flat tensors, made before anything is cached.
func (sum *zeroSum) rounding() int64 {
	each := ops.WeightBytes(sum.model.Workload.Precision)
	state, _ := sum.model.Optimizer.State(nil, 1, each)
	var total int64
	if !sum.set.OffloadOptimizer {
		for _, part := range sum.groups {
			total += allocator.Rounding(part*each) * (1 + state/each)
		}
	}
	if sum.stage == 3 {
		return total + allocator.Rounding(sum.part*sum.grad) + allocator.Rounding(sum.part*sum.summed)
	}
	return total + allocator.Rounding(sum.whole*sum.grad)
}

// ownPart is the first rank's shard of the flat weights. Its elements are those of all parameters
// that begin in it: one that crosses its end is kept whole (stage_1_and_2.py, get_partition_info).
// The largest piece of a parameter within it is piece; largest is any rank's largest parameter.
type ownPart struct{ elements, piece, largest int64 }

func (sum *zeroSum) firstPart() ownPart {
	end := sum.share(sum.whole)
	var out ownPart
	var start int64
	for i := range sum.model.Layers {
		layer := &sum.model.Layers[i]
		if !layer.Runs {
			continue
		}
		for _, tensor := range updated(&layer.Whole, sum.model) {
			if start < end {
				out.elements += tensor.numel
				out.piece = max(out.piece, min(tensor.numel, end-start))
			}
			start += tensor.numel
			out.largest = max(out.largest, tensor.numel)
		}
	}
	return out
}
