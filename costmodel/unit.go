package costmodel

// LayerMemory is one layer's effect on its device's memory, in bytes for one micro-batch.
type LayerMemory struct {
	Layer string
	// Saved is kept from the layer's forward to its backward.
	Saved int64
	// RecomputeSaved is the part of it, or of its transients, that selective recomputation keeps
	// until the layer runs again.
	RecomputeSaved int64
	// KV is kept from the layer's forward to the end of the step. CacheGrowth is the cache's growth
	// in generation after the prompt, negative if a window drops some.
	KV, CacheGrowth int64
	// UntilBodyEnd is kept from its forward to the end of the model's body, in inference.
	UntilBodyEnd int64
	// HeadPeak is the most alive at once when every cache is complete, above
	// that: in the head's forward and in the last token's, in inference.
	HeadPeak int64
	// Forward is the most alive at once during the layer's forward, above
	// what was there before; its own Saved and KV are in it.
	Forward int64
	// Backward is the most alive at once during its backward, above the saved activations (its own
	// included) and earlier gradients. BackwardGrads are its own new gradients in Backward.
	// Backward and Saved are at least Grads together.
	Backward, BackwardGrads int64
	// AccumPeak is Backward if the layer's parameters have gradients already: new ones are added to
	// them and dropped, matrix by matrix.
	AccumPeak int64
	// Grads are the gradients that its backward leaves.
	Grads int64
	// GatheredForward, GatheredAgain and GatheredBackward are other GPUs' parameters on this one in
	// forward, recomputation and backward, if they are gathered module by module (zero3).
	GatheredForward, GatheredAgain, GatheredBackward int64
	// Reducing is the temporary memory of the gradients' reduction after its backward (zero2, zero3).
	Reducing int64
	// Weights are the parameters that its forward reads, tied ones too: copied if it is offloaded.
	Weights int64
	// Loss marks the layer that computes the loss.
	Loss bool
	// LossBackward is the part of Backward before the gradient reaches the logits. HeadBackward is
	// the rest, with HeadGrads of new gradients. All are 0 if the loss is not followed by parts.
	LossBackward, HeadBackward, HeadGrads int64
	// LossForward is the most alive at once in the forward of a loss outside of the
	// model, above the same. Forward is then the model's alone.
	LossForward int64
	// LossFrees is the part of Saved that is freed when the gradient reaches the logits. LossAlive
	// is the loss's memory while the head's gradient is reduced in forward; 0: in backward.
	LossFrees, LossAlive int64
}

// Unit is what one wrap unit costs whatever its place.
type Unit struct {
	Name string
	// Products: it runs matrix products, for which its device holds the library's workspaces.
	Products bool
	// Params and Buffers are loaded sizes, tied parameters at their owner.
	Params, Buffers int64
	OptimizerState  int64
	// Padding is the allocator's rounding of the parameters' blocks; Params does not contain it.
	Padding int64
	// StatePadding is the same for gradients and optimizer states on a pipeline's rank without the
	// loss, whose logits leave larger blocks.
	StatePadding int64
	// OffloadBytes is copied to the device for one forward if the unit is offloaded: the parameters
	// of all its layers, tied ones too.
	OffloadBytes int64
	// ResidentGrads are gradients that stay between micro-batches (gradient accumulation).
	ResidentGrads int64
	// LastBackward is the unit's backward, above all gradients, if it runs last of all units.
	LastBackward int64
	// Loading is the temporary memory of converting its stored weights while the model is loaded.
	Loading int64
	// StepTransient is the unit's temporary memory in the optimizer's step.
	StepTransient int64
	// Layers are the layers in the order they run.
	Layers []LayerMemory
	// Recompute: forward keeps nothing of the layers but RecomputeKept, backward runs them again.
	Recompute bool
	// CheckpointedOutput is the unit's output if the next unit is recomputed from it. It stays on
	// this device until the next unit's backward is done.
	CheckpointedOutput int64
	// AutocastCopies are autocast's 16-bit copies of a recomputed unit's weights. Its cache keeps
	// them to the end of forward (autocast_mode.cpp, cached_cast).
	AutocastCopies int64
	// Output is what crosses to the next unit.
	Output int64
	// Entry is the part of the first layer's Saved that is the unit's input. Tail is the number of
	// last layers whose backward keeps the gradient of Output unchanged.
	Entry int64
	Tail  int
	// FLOPs of one forward of a micro-batch.
	FLOPs float64
	// Work is what its step time and its communication are made of.
	Work Work
	// Declared: the costs are from the model file, not from its operations' dimensions.
	Declared bool
	// Regions are its bytes in an arena, if the engine has one ([StageRules]); the bytes above then
	// do not apply.
	Regions Regions
}

// Passes reports a unit that joins the next one's stage: without parameters or declared costs, like
// the rotary embedding, which every stage has.
func (unit *Unit) Passes() bool { return unit.Params == 0 && !unit.Declared }
