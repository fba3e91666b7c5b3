package costmodel

// Pass is what running a unit once takes of a device: forward, or backward, of one micro-batch.
type Pass struct {
	Products  float64 // FLOPs of matrix products
	Unaligned float64 // FLOPs of those whose rows are no multiple of 16 bytes
	Attention float64 // FLOPs of the fused attention kernel
	Traffic   float64 // bytes read and written in memory, in order, by all other kernels
	Strided   float64 // bytes of kernels that broadcast, reduce, cast up, or read slices
	Kernels   float64 // how many kernels run
	// Fused of Kernels may run as Operations of one kernel, each of Rows rows: in devmap's decode steps.
	Fused, Operations, Rows float64
	Profiled                float64 // seconds that the model declares, on any device
	// Reduced is bytes of sums over the GPUs that share a stage's matrices, Reductions how many sums.
	Reduced, Reductions float64
	// Shared is bytes to GPUs with other tokens of a sequence, Dispatched to other experts' GPUs.
	Shared, Dispatched float64
}

// Work is a unit's work in a step, independent of its place.
type Work struct {
	// Forward and Backward are of one micro-batch; Backward includes recomputation.
	Forward, Backward Pass
	// Learn is the second half of a backward in two: the gradients of weights. Backward is then the
	// first alone.
	Learn Pass
	// Recompute is the part of forward that runs again before Backward. Only devmap's own engine
	// separates it from Backward.
	Recompute Pass
	// Token is a forward of one token a sequence, in generation, half-way through the new tokens.
	Token Pass
	// Weights are its parameters' elements, tied ones at their owner; Trained get gradients.
	Weights, Trained int64
	// Tensors is the number of trained parameters.
	Tensors int64
	// Update is the optimizer's bytes read and written for all of Trained.
	Update float64
	// Output is what crosses to the next unit, in bytes a micro-batch.
	Output int64
	// Block: the unit is gathered on its own under sharding; the root gathers the others together.
	Block bool
}
