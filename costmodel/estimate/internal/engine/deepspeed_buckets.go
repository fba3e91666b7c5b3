package engine

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/allocator"
)

// buckets are ZeRO 1 and 2's gradient buffers: the bucket, which a backward's first gradient allocates
// (stage_1_and_2.py, setup_buckets), a second one if communication overlaps, and the rank's shard from
// earlier micro-batches. ZeRO 1 frees the bucket after the last micro-batch's reduction.
func (sum *zeroSum) buckets(table *costmodel.Table) {
	several := sum.model.Workload.MicroBatches > 1
	bucket := sum.set.ReduceBucket * sum.grad
	if sum.stage == 1 {
		bucket = sum.set.ReduceBucket * sum.summed
	}
	bucket += allocator.Rounding(bucket)
	if sum.set.Overlap {
		bucket *= 2
	}
	if !sum.set.Contiguous {
		bucket = 0
	}
	if sum.stage == 1 && several {
		table.Buckets += bucket
		bucket = 0
	}
	for unit := range table.Units {
		for k := range table.Units[unit].Layers {
			if step := &table.Units[unit].Layers[k]; !step.Loss {
				step.GatheredBackward = bucket
			}
		}
	}
	part := sum.firstPart()
	if sum.set.OffloadOptimizer {
		table.Buckets += part.largest * sum.grad // temp_grad_buffer_for_gpu_offload
		return
	}
	if sum.stage == 2 && several {
		table.Units[0].ResidentGrads += part.elements * sum.summed
	}
}

// reductions sets the reductions in each layer's backward. Gradients fill the bucket in the order
// of backward. If the next has no room, the bucket's gradients are joined and reduced
// (stage_1_and_2.py, allreduce_bucket; comm/coalesced_collectives.py, reduce_scatter_coalesced);
// one alone is not copied. A gradient larger than the bucket stays outside until reduced. The last
// are reduced after backward. ZeRO 1 reduces only then, when as much is free.
func (sum *zeroSum) reductions(table *costmodel.Table) {
	if sum.stage == 1 {
		return
	}
	bucket := reduction{zeroSum: sum, offset: sum.whole}
	var last *costmodel.LayerMemory
	for unit := len(table.Units) - 1; unit >= 0; unit-- {
		exec := sum.model.Unit(unit)
		for k := len(exec) - 1; k >= 0; k-- {
			layer, step := &sum.model.Layers[exec[k]], &table.Units[unit].Layers[k]
			if !layer.Runs {
				continue
			}
			last = step
			if !sum.set.Contiguous { // gradients stay as they are made until they are reduced
				step.GatheredBackward += bucket.filled * sum.grad
			}
			step.GatheredBackward += bucket.oversized * sum.grad
			tensors := updated(&layer.Whole, sum.model)
			for j := len(tensors) - 1; j >= 0; j-- {
				bucket.take(step, tensors[j].numel)
			}
		}
	}
	if last != nil {
		bucket.reduce(last, bucket.oversized)
	}
}

// reduction is the gradients that are to be reduced next.
type reduction struct {
	*zeroSum
	filled    int64 // elements of them
	alone     bool  // it is one
	oversized int64 // elements of the one that is larger than the bucket
	offset    int64 // of the last of them among all parameters
}

// take adds a gradient; if it has no room, earlier ones are reduced first.
func (bucket *reduction) take(step *costmodel.LayerMemory, numel int64) {
	if bucket.filled > 0 && bucket.filled+numel > bucket.set.ReduceBucket {
		bucket.reduce(step, numel)
	}
	bucket.alone = bucket.filled == 0
	bucket.filled += numel
	bucket.offset -= numel
	if bucket.set.Contiguous && numel > bucket.set.ReduceBucket {
		bucket.oversized = numel
	}
}

// reduce has a layer's backward pay for the copies of a reduction, while next elements exist outside it.
func (bucket *reduction) reduce(step *costmodel.LayerMemory, next int64) {
	each := bucket.grad
	if bucket.set.FP32Gradients {
		each += 4
	}
	flat := bucket.filled
	switch {
	case bucket.stage == 3 && bucket.alone:
		flat = 0 // if it divides; padding is not counted
	case bucket.stage == 2 && bucket.oversized > 0:
		flat = bucket.flattened(bucket.offset, bucket.oversized)
	}
	step.Reducing = max(step.Reducing, flat*each+next*bucket.grad)
	bucket.filled, bucket.oversized = 0, 0
}

// flattened is the most elements joined at once of a gradient larger than the bucket. Its slices,
// one for each rank that owns a part, are joined until they exceed the bucket (stage_1_and_2.py,
// allreduce_and_scatter); one alone is reduced in place.
func (sum *zeroSum) flattened(offset, numel int64) int64 {
	var most, gathered, slices int64
	part := max(sum.share(sum.whole), 1)
	for at := offset; at < offset+numel; {
		end := min((at/part+1)*part, offset+numel)
		gathered, slices, at = gathered+end-at, slices+1, end
		if slices > 1 {
			most = max(most, gathered)
		}
		if gathered > sum.set.ReduceBucket {
			gathered, slices = 0, 0
		}
	}
	return most
}
