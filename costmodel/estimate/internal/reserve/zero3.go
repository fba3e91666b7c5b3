package reserve

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel/internal/replay"
	"github.com/devmap-dev/devmap/costmodel/internal/zero"
)

// whole3 is a rank under ZeRO 3 (DeepSpeed's stage3.py): shards, gathered module by module.
type whole3 struct {
	*ZeRO
	*Process
	follow     *zero.Following
	filled     int64
	entries    []*replay.Weight
	groups     []int64 // elements that are updated one after another
	persistent []*replay.Tensor
}

func (rank *whole3) gathers() int {
	if rank.Settings.Overlap {
		return replay.Gather
	}
	return replay.Compute
}

func (rank *whole3) reduces() int {
	if rank.Settings.Overlap {
		return replay.Reduce
	}
	return replay.Compute
}

// start is zero.Init, which makes each parameter whole and keeps its shard. Then deepspeed.initialize
// joins the shards by way of the host (zero/utils.py, defragment), and makes masters and buffers.
func (rank *whole3) start() {
	var cut []*replay.Tensor
	params := rank.Params
	if rank.Head.Linear.Weight == rank.Embedding.Weight { // made twice, tied then
		params = append(slices.Clone(params), rank.Head.Linear.Weight)
	}
	for _, weight := range params {
		full := rank.New(weight.Numel * rank.Grad)
		if !rank.Settings.OffloadParams {
			if part := rank.New(rank.share(weight.Numel) * rank.Grad); weight.Trained {
				cut = append(cut, part)
			}
		}
		rank.Drop(full)
	}
	var total int64
	for _, weight := range rank.Trained {
		part := rank.share(weight.Numel)
		total += part
		last := len(rank.groups) - 1
		if last < 0 || rank.groups[last] >= rank.Settings.SubGroup {
			rank.groups, last = append(rank.groups, 0), last+1
		}
		rank.groups[last] += part
	}
	rank.part = total
	if !rank.Settings.OffloadParams {
		rank.Drop(cut...)
		rank.Cache.Empty()
		rank.New(total * rank.Grad)
	}
	if !rank.Settings.OffloadOptimizer {
		var largest int64
		for _, group := range rank.groups {
			converted := rank.New(group * rank.Master)
			if rank.Master != rank.Grad {
				rank.New(group * rank.Master) // its clone
				rank.Drop(converted)
			}
			largest = max(largest, group)
		}
		rank.Drop(rank.New(largest * rank.Master))
	}
	if rank.Settings.Contiguous {
		rank.New(rank.Settings.ReduceBucket * rank.reduced())
	}
	if !rank.Settings.OffloadOptimizer {
		rank.New(total * rank.Summed)
	}
	for _, weight := range rank.Trained { // gathered once for its hook (create_reduce_and_remove_grad_hooks)
		rank.Drop(rank.New(weight.Numel * rank.Grad))
	}
}

func (rank *whole3) reduced() int64 {
	if rank.Settings.FP32Reduction {
		return 4
	}
	return rank.Grad
}

func (rank *whole3) micro(step int, body func()) {
	if rank.follow != nil {
		rank.follow.Close()
	}
	rank.follow = zero.Follow(rank.Trace, rank.Settings.Limits, rank.Ranks, rank.Settings.OffloadParams, step == 0 && len(rank.marks) == 0, rank)
	body()
	rank.reduce()
}

func (rank *whole3) Gathered(bytes int64) any { return rank.On(rank.gathers(), bytes) }

func (rank *whole3) Released(block any) {
	if tensor, ok := block.(*replay.Tensor); ok {
		rank.Drop(tensor)
	}
}

func (rank *whole3) Enter(layer int, module string, backward bool) {
	rank.call(layer, module, false, backward)
}

func (rank *whole3) Leave(layer int, module string, backward bool) {
	rank.call(layer, module, true, backward)
}

func (*whole3) Block(int, bool, bool) {}
func (*whole3) Backward()             {}

func (rank *whole3) call(layer int, module string, ends, backward bool) {
	if place, ok := rank.Called(layer, module, ends, backward, rank.follow.At()); ok {
		rank.follow.To(place)
	}
}

// Gradient copies a gradient to the bucket on the stream that reduces (__add_grad_to_ipg_bucket).
func (rank *whole3) Gradient(weight *replay.Weight) {
	if rank.filled > 0 && rank.filled+weight.Numel > rank.Settings.ReduceBucket {
		rank.reduce()
	}
	if rank.Settings.Contiguous && weight.Numel <= rank.Settings.ReduceBucket {
		rank.let(weight)
	}
	rank.filled += weight.Numel
	rank.entries = append(rank.entries, weight)
}

func (rank *whole3) let(weight *replay.Weight) {
	if weight.Grad == nil {
		return
	}
	rank.Drop(weight.Grad)
	weight.Grad = nil
}

// reduce lays the bucket's gradients end to end, rank by rank, unless it is
// one that divides (comm/coalesced_collectives.py, reduce_scatter_coalesced).
func (rank *whole3) reduce() {
	if len(rank.entries) == 0 {
		return
	}
	var padded int64
	for _, weight := range rank.entries {
		padded += rank.share(weight.Numel) * rank.Ranks
	}
	if len(rank.entries) > 1 || padded != rank.filled {
		rank.Drop(rank.On(rank.reduces(), padded*rank.reduced()))
	}
	for _, weight := range rank.entries {
		if rank.Settings.OffloadOptimizer { // partition_grads, _offload_grad_partition_at_boundary
			part := rank.share(weight.Numel)
			grad := rank.On(rank.reduces(), part*rank.Grad)
			rank.Drop(rank.On(rank.reduces(), 8*part)) // norms in fp64
			if rank.Master != rank.Grad {
				rank.Drop(rank.On(rank.reduces(), part*rank.Master))
			}
			rank.Drop(grad)
		}
		rank.let(weight)
	}
	rank.filled, rank.entries = 0, rank.entries[:0]
}

func (rank *whole3) boundary() {}

// step is the optimizer's: norms in fp64, then for each group the joined gradients, in the masters'
// type, and the update. Then persistent parameters are gathered.
func (rank *whole3) step(first bool) {
	if !rank.Settings.OffloadOptimizer {
		for _, weight := range rank.Trained {
			rank.Drop(rank.New(8 * rank.share(weight.Numel)))
		}
		for _, group := range rank.groups {
			grad := rank.New(group * rank.Summed)
			if rank.Master != rank.Summed {
				wide := rank.New(group * rank.Master)
				rank.Drop(grad)
				grad = wide
			}
			if first {
				rank.states(rank.Run, group)
			}
			rank.Drop(grad)
		}
	}
	rank.Drop(rank.persistent...)
	rank.persistent = nil
	var sizes []int64
	var sum int64
	for i := range rank.Trace.Params {
		if each := &rank.Trace.Params[i]; each.Persistent && rank.Ranks > 1 {
			sizes = append(sizes, rank.share(each.Numel)*rank.Ranks*each.Bytes)
			sum += sizes[len(sizes)-1]
		}
	}
	buffer := rank.New(sum)
	for _, size := range sizes {
		rank.persistent = append(rank.persistent, rank.New(size))
	}
	rank.Drop(buffer)
}
