package reserve

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/internal/replay"
)

// parts is a rank under ZeRO 1 or 2 (DeepSpeed's stage_1_and_2.py): it updates a shard of flat
// weights.
type parts struct {
	*ZeRO
	*Process
	offset  map[*replay.Weight]int64 // in the flat weights
	bucket  []*replay.Tensor
	filled  int64
	entries []*replay.Weight
	own     *replay.Tensor // gradients of the rank's part (grads_in_partition)
	summed  *replay.Tensor // of the micro-batches before (averaged_gradients)
}

// immediate reports that gradients are reduced as they come.
func (rank *parts) immediate() bool { return rank.Settings.Stage == 2 || rank.Settings.Overlap }

func (rank *parts) stream() int {
	if rank.Settings.Overlap {
		return replay.Reduce
	}
	return replay.Compute
}

// start is deepspeed.initialize of a module with weights on the GPU.
func (rank *parts) start() {
	rank.offset = make(map[*replay.Weight]int64)
	var flat []*replay.Tensor
	for _, weight := range rank.Params {
		tensor := rank.New(weight.Numel * rank.Grad)
		if weight.Trained {
			flat = append(flat, tensor)
		}
	}
	var at int64
	for _, weight := range rank.Trained {
		rank.offset[weight] = at
		at += weight.Numel
		if rank.layers.Frozen {
			flat = append(flat, rank.New(weight.Numel*rank.Grad))
		}
	}
	rank.Cache.Empty()
	rank.New(rank.whole * rank.Grad)
	rank.Drop(flat...)
	clone := rank.New(rank.part * rank.Grad)
	switch {
	case rank.Settings.OffloadOptimizer:
		rank.Drop(clone)
		var largest int64
		for _, weight := range rank.Trained {
			largest = max(largest, weight.Numel)
		}
		rank.New(largest * rank.Grad) // temp_grad_buffer_for_gpu_offload
		return
	case rank.Master != rank.Grad:
		rank.New(rank.part * rank.Master)
		rank.Drop(clone)
	}
	rank.Drop(rank.New(rank.part * rank.Master)) // initialize_optimizer_states
}

func (*parts) Enter(int, string, bool) {}
func (*parts) Leave(int, string, bool) {}
func (*parts) Block(int, bool, bool)   {}
func (*parts) Backward()               {}

// setup makes the bucket that gradients are copied to (setup_buckets).
func (rank *parts) setup() {
	if rank.bucket != nil || !rank.Settings.Contiguous {
		return
	}
	each := rank.Grad
	if rank.Settings.Stage == 1 {
		each = rank.Summed
	}
	rank.bucket = []*replay.Tensor{rank.New(rank.Settings.ReduceBucket * each)}
	if rank.Settings.Overlap {
		rank.bucket = append(rank.bucket, rank.New(rank.Settings.ReduceBucket*each))
	}
}

// Gradient is reduce_partition_and_remove_grads.
func (rank *parts) Gradient(weight *replay.Weight) {
	rank.setup()
	if rank.immediate() {
		rank.take(weight)
		return
	}
	if rank.Summed != rank.Grad && weight.Grad != nil { // grad_accum, in fp32
		wide := rank.New(weight.Numel * rank.Summed)
		rank.Drop(weight.Grad)
		weight.Grad = wide
	}
}

// take copies a gradient to the bucket, which is reduced first if it has no
// room (reduce_independent_p_g_buckets_and_remove_grads).
func (rank *parts) take(weight *replay.Weight) {
	if rank.filled > 0 && rank.filled+weight.Numel > rank.Settings.ReduceBucket {
		rank.reduce()
	}
	if rank.Settings.Contiguous && weight.Numel <= rank.Settings.ReduceBucket {
		rank.Drop(weight.Grad)
		weight.Grad = nil
	}
	rank.filled += weight.Numel
	rank.entries = append(rank.entries, weight)
}

// reduce is reduce_ipg_grads: it reduces the bucket and copies the rank's shard
// (copy_grads_in_partition).
func (rank *parts) reduce() {
	if len(rank.entries) == 0 {
		return
	}
	each := rank.Grad
	if rank.Settings.Stage == 1 {
		each = rank.Summed
	}
	if rank.compact() && slices.ContainsFunc(rank.entries, rank.owns) && rank.own == nil {
		rank.own = rank.On(rank.stream(), rank.part*rank.Summed)
	}
	rank.flatten(each)
	for _, weight := range rank.entries {
		if rank.owns(weight) && !rank.Settings.OffloadOptimizer && rank.own == nil {
			rank.own = rank.On(rank.stream(), rank.ownElements()*each)
		}
		if rank.owns(weight) && rank.Settings.OffloadOptimizer {
			piece := min(weight.Numel, rank.part-rank.offset[weight])
			rank.Drop(rank.On(rank.stream(), 8*piece)) // set_norm_for_param_grad_in_gpu
			rank.Drop(rank.On(rank.stream(), 4*piece)) // async_inplace_copy_grad_to_fp32_buffer_from_gpu
		}
		rank.Drop(weight.Grad)
		weight.Grad = nil
	}
	rank.filled, rank.entries = 0, rank.entries[:0]
}

// flatten joins a rank's slices of the bucket, up to a bucket's size (allreduce_and_scatter).
func (rank *parts) flatten(each int64) {
	for _, group := range rank.groups() {
		var flat, wide *replay.Tensor
		if group.slices > 1 {
			flat = rank.On(rank.stream(), group.elements*each)
		}
		if rank.Settings.FP32Reduction && each < 4 {
			wide = rank.On(rank.stream(), group.elements*4)
		}
		rank.Drop(flat, wide)
	}
}

// owns reports a parameter that begins in the rank's part.
func (rank *parts) owns(weight *replay.Weight) bool { return rank.offset[weight] < rank.part }

// compact reports fp32 sums of reduced gradients (_build_compact_grad_partition_buffer).
func (rank *parts) compact() bool {
	return rank.Settings.Stage == 2 && rank.Summed != rank.Grad && !rank.Settings.OffloadOptimizer
}

// group is the runs of the bucket that are reduced together, each for one rank.
type group struct{ slices, elements int64 }

// groups are the bucket's groups (allreduce_and_scatter).
func (rank *parts) groups() (all []group) {
	var now group
	last := int64(-1)
	for _, weight := range rank.entries {
		for at, end := rank.offset[weight], rank.offset[weight]+weight.Numel; at < end; {
			owner := at / rank.part
			if owner != last {
				if now.elements > rank.Settings.ReduceBucket {
					all, now = append(all, now), group{}
				}
				now.slices++
			}
			next := min((owner+1)*rank.part, end)
			now.elements, last, at = now.elements+next-at, owner, next
		}
	}
	return append(all, now)
}

// ownElements are the elements of parameters that begin in the rank's shard.
func (rank *parts) ownElements() int64 {
	var total int64
	for weight, at := range rank.offset {
		if at < rank.part {
			total += weight.Numel
		}
	}
	return total
}

func (rank *parts) micro(_ int, body func()) {
	body()
	if !rank.immediate() {
		return
	}
	rank.reduce()
	rank.release()
}

// release frees the bucket and adds up what was reduced.
func (rank *parts) release() {
	rank.Drop(rank.bucket...)
	rank.bucket = nil
	if rank.summed == nil {
		rank.summed = rank.own
	} else {
		rank.Drop(rank.own)
	}
	rank.own = nil
}

// boundary reduces what ZeRO 1 has summed up.
func (rank *parts) boundary() {
	if rank.immediate() {
		return
	}
	for _, weight := range rank.Trained {
		if weight.Grad != nil {
			rank.take(weight)
		}
	}
	rank.reduce()
	rank.release()
}

// flat is the rank's joined gradients; a single one is not copied.
func (rank *parts) flat() *replay.Tensor {
	pieces := 0
	for _, at := range rank.offset {
		if at < rank.part {
			pieces++
		}
	}
	if (pieces == 1 || rank.compact()) && rank.summed != nil {
		return rank.summed.Keep()
	}
	return rank.New(rank.part * rank.Summed)
}

func (rank *parts) step(first bool) {
	if rank.Settings.OffloadOptimizer {
		rank.Drop(rank.summed)
		rank.summed = nil
		return
	}
	for _, weight := range rank.Trained { // norms in fp64 (get_grad_norm_direct)
		if at := rank.offset[weight]; at < rank.part {
			rank.Drop(rank.New(8 * min(weight.Numel, rank.part-at)))
		}
	}
	grad := rank.flat()
	if rank.Master != rank.Summed {
		wide := rank.New(rank.part * rank.Master)
		rank.Drop(grad)
		grad = wide
	}
	rank.Drop(rank.summed)
	rank.summed = nil
	if first {
		rank.states(rank.Run, rank.part)
	}
	rank.Drop(grad)
}
