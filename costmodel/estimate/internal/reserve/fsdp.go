package reserve

import "github.com/devmap-dev/devmap/costmodel/internal/replay"

// Shards is a rank under FSDP2, in numbers.
type Shards struct {
	// Groups are the blocks' by their index, and the root's last.
	Groups []ShardGroup
	Ranks  int64
	// Bytes of a stored element and of an adapter's; tensors that the optimizer has of each.
	Stored, StoredAdapter int64
	States                int64
	MicroBatches, Steps   int
	// Hybrid: gradients of several micro-batches are summed after reduction; HSDP's all-reduce
	// keeps each until the end of the step.
	Hybrid bool
}

// ShardGroup is one of its parameter groups. Buffer is the all-gather's output,
// CopyIn its cast input, Reduce the reduce-scatter's input, Reduced its output.
type ShardGroup struct {
	Weights                         []*replay.Weight
	Buffer, CopyIn, Reduce, Reduced int64
	Remains                         bool // gathered from forward to backward
}

// shards is such a rank at work (torch 2.11, distributed/fsdp/_fully_shard).
type shards struct {
	*Shards
	*Process
	whole   map[int][]*replay.Tensor // gathered parameters by group
	ahead   map[int]*replay.Tensor   // all-gathers that were issued
	last    *replay.Tensor           // the all-gather before, in forward
	reduce  *replay.Tensor           // the reduce-scatter's input before
	sums    []*replay.Tensor         // sharded gradients
	reduced bool                     // in a micro-batch before
}

// Simulate runs the first steps of a rank.
func (rank *Shards) Simulate(decoder *Decoder) [][2]int64 { return pairs(rank.run(decoder)) }

func (rank *Shards) run(decoder *Decoder) []int64 {
	process := newProcess(decoder, rank.Ranks)
	work := &shards{Shards: rank, Process: &process, whole: make(map[int][]*replay.Tensor), ahead: make(map[int]*replay.Tensor)}
	adapters := make(map[*replay.Weight]bool)
	if decoder.layers.Frozen {
		for _, weight := range decoder.Trained {
			adapters[weight] = true
		}
	}
	size := func(weight *replay.Weight) int64 {
		if adapters[weight] {
			return process.share(weight.Numel) * rank.StoredAdapter
		}
		return process.share(weight.Numel) * rank.Stored
	}
	for _, group := range rank.Groups {
		for _, weight := range group.Weights {
			process.New(size(weight))
		}
	}
	process.Cache.ResetPeaks()
	for step := range rank.Steps {
		for range rank.MicroBatches {
			process.pass(work)
			work.end()
			if !work.reduced {
				work.reduced = true
			}
			process.mark()
		}
		work.step(step == 0, size)
	}
	return process.marks
}

func (rank *shards) root() int { return len(rank.Groups) - 1 }

func (rank *shards) Enter(layer int, _ string, backward bool) {
	if layer == rank.Embedding.Index && !backward {
		rank.enter(rank.root())
	}
}
func (*shards) Leave(int, string, bool) {}
func (*shards) Gradient(*replay.Weight) {}

// Backward is the root's hook, which issues the last block's all-gather.
func (rank *shards) Backward() {
	rank.Drop(rank.last)
	rank.last = nil
	rank.issue(len(rank.Groups) - 2)
}

func (rank *shards) Block(index int, ends, backward bool) {
	switch {
	case !backward && !ends:
		rank.enter(index)
	case !backward:
		if !rank.Groups[index].Remains {
			rank.let(index)
		}
	case !ends:
		rank.arrive(index)
	default:
		rank.scatter(index)
	}
}

// issue starts an all-gather (foreach_all_gather); a group of one GPU has none.
func (rank *shards) issue(index int) {
	if index < 0 || rank.ahead[index] != nil || len(rank.whole[index]) > 0 {
		return
	}
	group := &rank.Groups[index]
	cast := rank.On(replay.Gather, group.CopyIn)
	rank.ahead[index] = rank.On(replay.Gather, group.Buffer)
	rank.Drop(cast)
}

// enter gathers a group before its forward: the all-gather before is freed
// first (wait_for_unshard, implicit prefetch).
func (rank *shards) enter(index int) {
	rank.issue(index)
	rank.Drop(rank.last)
	rank.copyOut(index)
	rank.last = rank.ahead[index]
	delete(rank.ahead, index)
}

func (rank *shards) copyOut(index int) {
	for _, weight := range rank.Groups[index].Weights {
		rank.whole[index] = append(rank.whole[index], rank.New(rank.share(weight.Numel)*rank.Ranks*rank.Element))
	}
}

func (rank *shards) let(index int) {
	rank.Drop(rank.whole[index]...)
	rank.whole[index] = rank.whole[index][:0]
}

// arrive is a group's pre_backward.
func (rank *shards) arrive(index int) {
	if len(rank.whole[index]) == 0 {
		rank.issue(index)
		rank.copyOut(index)
		rank.Drop(rank.ahead[index])
		delete(rank.ahead, index)
	}
	rank.issue(index - 1)
}

// scatter is a group's post_backward (foreach_reduce): a loop variable holds the last gradient.
func (rank *shards) scatter(index int) {
	group := &rank.Groups[index]
	rank.let(index)
	var grads []*replay.Tensor
	for _, weight := range group.Weights {
		if weight.Grad != nil {
			grads = append(grads, weight.Grad)
			weight.Grad = nil
		}
	}
	if len(grads) == 0 {
		return
	}
	rank.Drop(rank.reduce)
	rank.reduce = rank.New(group.Reduce)
	rank.Drop(grads[:len(grads)-1]...)
	sum := rank.On(replay.Reduce, group.Reduced)
	rank.Drop(grads[len(grads)-1])
	if rank.reduced && !rank.Hybrid {
		rank.Drop(sum)
	} else {
		rank.sums = append(rank.sums, sum)
	}
}

// end is the callback at the end of backward, which reduces the root's.
func (rank *shards) end() {
	rank.scatter(rank.root())
	rank.Drop(rank.reduce)
	rank.reduce = nil
}

// step is the optimizer's; the gradients go.
func (rank *shards) step(first bool, size func(*replay.Weight) int64) {
	if first {
		for _, weight := range rank.Trained {
			for range rank.States {
				rank.New(size(weight))
			}
		}
	}
	rank.Drop(rank.sums...)
	rank.sums, rank.reduced = nil, false
}
