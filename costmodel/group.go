package costmodel

// Group is parameters that are gathered together and whose gradients are reduced together: FSDP2's
// parameter group (torch 2.11, _fsdp_param_group.py FSDPParamGroup). Sizes are bytes on one rank,
// with the padding that makes the shards of all ranks equal.
type Group struct {
	Name  string
	Units []int // in Table.Units, the group's units that run
	// Gathered are the whole parameters in the type of compute.
	Gathered int64
	// Buffer is the all-gather's output, from which parameters are copied. CopyIn is the rank's own
	// shard of it, if that must be cast first.
	Buffer, CopyIn int64
	// Reduce is the reduce-scatter's input, Reduced its output; the sharded gradients are views of it.
	Reduce, Reduced int64
	// LastGrad is the gradient that is copied into Reduce last: a loop
	// variable of foreach_reduce keeps it while Reduced is made.
	LastGrad int64
	// Staged is the reduce-scatter's output before its cast to the gradients' type; 0: no cast.
	Staged int64
	// Root: the group of the whole model, gathered throughout.
	Root bool
	// Late: its input needs no gradient, so that it is reduced when backward is done.
	Late bool
	// RemainsGathered: it stays gathered from forward to backward.
	RemainsGathered bool
	// Joined are the whole gradients in one tensor, Retained the earlier micro-batches' (FSDP1).
	Joined, Retained int64
	// Unhooked: one of its modules does not run, so its backward gathers and prefetches nothing.
	Unhooked bool
	// Repeats: its forward runs a chunk at a time, and gathers it for each.
	Repeats bool
	// HeadReduce and HeadReduced are the input and the output of a reduction of
	// the head's gradient in forward, by the loss; 0: there is none.
	HeadReduce, HeadReduced int64
}
