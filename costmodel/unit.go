package costmodel

// LayerMemory is what running one layer does to the memory of its device. All
// figures are bytes for one micro-batch.
type LayerMemory struct {
	Layer string
	// Saved is kept from the layer's forward to its backward.
	Saved int64
	// RecomputeSaved is what of it, or of its transients, stays where the unit
	// is recomputed (selective), until the layer runs again.
	RecomputeSaved int64
	// KV is kept from its forward to the end of the step; CacheGrowth is what the cache gains while
	// tokens are generated after the prompt, negative if a window drops some.
	KV, CacheGrowth int64
	// UntilBodyEnd is kept from its forward to the end of the model's body, in
	// inference; the head runs without it.
	UntilBodyEnd int64
	// HeadPeak is the most alive at once when every cache is complete, above
	// that: in the head's forward and in the last token's, in inference.
	HeadPeak int64
	// Forward is the most alive at once during the layer's forward, above
	// what was there before; its own Saved and KV are in it.
	Forward int64
	// Backward is the most alive at once during its backward, above the saved activations (its own
	// in them) and the gradients that were there before; BackwardGrads of it are the layer's own
	// new gradients. With Saved it is at least Grads.
	Backward, BackwardGrads int64
	// AccumPeak is the most alive at once during a backward when the layer's
	// parameters have gradients already, above the same: what is new is added
	// to them and dropped, matrix by matrix.
	AccumPeak int64
	// Grads are the gradients that its backward leaves.
	Grads int64
	// GatheredForward, GatheredAgain and GatheredBackward are the parameters of
	// other GPUs that are there while it runs forward, is recomputed, and runs
	// backward, where these come and go module by module (zero3).
	GatheredForward, GatheredAgain, GatheredBackward int64
	// Reducing is what the reduction of gradients takes for a moment when its
	// backward is done (zero2, zero3).
	Reducing int64
	// Weights are the parameters that its forward reads, tied ones too: what is
	// copied for it if the unit is offloaded.
	Weights int64
	// Loss marks the layer that computes the loss.
	Loss bool
	// LossBackward is the part of Backward before the gradient reaches the logits, HeadBackward the
	// rest, HeadGrads of it new gradients; all 0 where the loss is not followed by parts.
	LossBackward, HeadBackward, HeadGrads int64
	// LossForward is the most alive at once in the forward of a loss outside of the
	// model, above the same. Forward is then the model's alone.
	LossForward int64
	// LossFrees is how much less of Saved there is when the gradient has reached
	// the logits. LossAlive is what the loss has alive while the head's
	// gradient is reduced in forward; 0: it is reduced in backward.
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
	// Padding is what the engine's allocator adds to the parameters: rounding
	// of their blocks. It is no part of Params.
	Padding int64
	// StatePadding is the same of its gradients and optimizer states on a
	// pipeline's rank without the loss, whose logits leave larger blocks.
	StatePadding int64
	// OffloadBytes is what is copied to the device for one forward of the unit
	// if it is offloaded: the parameters of all its layers, tied ones too.
	OffloadBytes int64
	// ResidentGrads are gradients that stay from one micro-batch to the next
	// (gradient accumulation): alive throughout.
	ResidentGrads int64
	// LastBackward is what the unit's backward takes if it runs after that of
	// every other unit, above all gradients.
	LastBackward int64
	// Loading is what the conversion of its stored weights takes at once, above the
	// weights themselves, while the model is loaded.
	Loading int64
	// StepTransient is what the optimizer's step adds for the unit.
	StepTransient int64
	// Layers are the layers in the order they run.
	Layers []LayerMemory
	// Recompute: forward keeps nothing of the layers but RecomputeKept, backward runs them again.
	Recompute bool
	// CheckpointedOutput is the unit's output if the next unit is recomputed
	// from it: it stays on this device until that one's backward is done.
	CheckpointedOutput int64
	// AutocastCopies are autocast's 16-bit copies of a recomputed unit's
	// weights: its cache keeps them to the end of forward (autocast_mode.cpp,
	// cached_cast; cleared where the autocast region ends).
	AutocastCopies int64
	// Output is what crosses to the next unit.
	Output int64
	// Entry is the part of the first layer's Saved that is the unit's input itself. Tail is the
	// number of last layers through whose backward the gradient of Output stays as it came.
	Entry int64
	Tail  int
	// FLOPs of one forward of a micro-batch.
	FLOPs float64
	// Work is what its step time and its communication are made of.
	Work Work
	// Declared: the costs are from the model file; else they follow from the
	// dimensions of its operations.
	Declared bool
	// Regions are what it takes of an arena, if the engine has one
	// ([StageRules]); the bytes above then say nothing of what a device holds.
	Regions Regions
}

// Passes reports that a pipeline's stage takes the unit along with the next
// one, as it is no stage on its own: without parameters or costs that a file
// declares, like the rotary: every stage has its own.
func (unit *Unit) Passes() bool { return unit.Params == 0 && !unit.Declared }
