package costmodel

// RegionAlign is what the sizes of [Regions] are rounded up to: every buffer of
// an arena begins at a multiple of it, as cuBLAS and vector loads want it.
const RegionAlign = 256

// Regions are the bytes that one unit takes of the regions of an arena, where the engine plans
// every byte of a device before it runs (devmap's own). They are what its recipe (package recipe)
// adds up to. Every figure is a multiple of [RegionAlign], and none depends on the unit's place.
type Regions struct {
	// Held throughout. Weights are those that the unit owns; of the ones that another unit owns
	// ([Tie]) a device has one copy. Every use has Grads of its own, tied ones too. Master and
	// State are the optimizer's: weights in fp32, and moments.
	Weights, Grads, Master, State int64
	Tied                          []Tie
	// Cache is the KV cache of all sequences of the batch, Feed the token ids
	// and labels of all of them.
	Cache, Feed int64
	// Held by every micro-batch in flight: what is kept of the input, and of all that forward
	// makes. Input is 0 where the unit adds to its input in place: its output then lies where its
	// input does. A recomputed unit has a Saved of 0, and Remade is part of Forward and of
	// Backward, at their beginning: what forward makes for backward and does not keep.
	Input, Saved, Remade int64
	// Scratch: the temporaries of a pass. Running a recomputed unit again
	// before its backward takes no more than Backward.
	Forward, Backward, Decode int64
	// Output is the message to the next unit, of a micro-batch; Token of one token a sequence.
	// Result is what the last unit makes for the caller: logits of a micro-batch, or its losses.
	Output, Token, Result int64
	// Tensors is the number of parameters with a gradient that the unit owns.
	Tensors int64
	// Passes: the unit runs no kernel and passes its input to the next. It is run with
	// its neighbour, and on its own copies its input.
	Passes bool
}

// Tie is a weight that a unit reads and another one owns.
type Tie struct {
	Owner  int    // the unit
	Tensor string // the weight's full name, there: uses of one weight agree in both
	// Weights, Master, State and Grads are its sizes: those of a copy on a
	// device without the owner, and of the gradient that each use has.
	Weights, Master, State, Grads int64
}

// Running are the first and the last unit that run kernels in devmap's own engine: before the one
// nothing is sent, nor after the other. If none does, first is their number and last -1.
func Running(units []Unit) (first, last int) {
	first, last = len(units), -1
	for unit := range units {
		if !units[unit].Regions.Passes {
			first, last = min(first, unit), unit
		}
	}
	return first, last
}
