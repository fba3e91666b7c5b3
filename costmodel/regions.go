package costmodel

// RegionAlign is the alignment of every buffer in an arena, for cuBLAS and vector loads, in bytes.
const RegionAlign = 256

// Regions are a unit's bytes in each region of an arena, if the engine plans every byte of a device
// before it runs (devmap's own). Package recipe computes them. Every figure is a multiple of
// [RegionAlign], and none depends on the unit's place.
type Regions struct {
	// Alive throughout. Weights are the unit's own; a device has one copy of those that another
	// unit owns ([Tie]). Every use has its own Grads, tied uses too. Master are the optimizer's
	// fp32 weights, State its moments.
	Weights, Grads, Master, State int64
	Tied                          []Tie
	// Cache is the KV cache of all sequences of the batch, Feed the token ids and labels of all of them.
	Cache, Feed int64
	// Alive for every micro-batch in flight: the kept part of the input, and of forward's results.
	// Input is 0 if the unit adds to its input in place. A recomputed unit has a Saved of 0. Remade
	// are then the results that backward needs, at the beginning of Forward and Backward.
	Input, Saved, Remade int64
	// Moved is not 0 if these, with Late, wait in host memory from forward to backward. It is how many
	// sets of them a device has then, for all such units in turn.
	Moved int64
	// A backward in two halves has more lifetimes ([ScheduleKind.Split]). Saved ends with the
	// gradient of the input. Late is saved too, and ends with the gradients of the weights; so does
	// the input if KeepsInput. Pending begins with the one half and ends with the other: the gradients
	// of products' outputs, and inputs of products that are made again. Learn is the scratch of the
	// second half. A unit with a Learns of false makes all its gradients in the first half.
	Late, Pending, Learn int64
	KeepsInput, Learns   bool
	// Scratch: the temporaries of a pass. Running a recomputed unit again
	// before its backward takes no more than Backward.
	Forward, Backward, Decode int64
	// Output is a micro-batch's message to the next unit, Token the same of one token a sequence.
	// Result is what the last unit returns: a micro-batch's logits or losses.
	Output, Token, Result int64
	// Tensors is the number of parameters with a gradient that the unit owns.
	Tensors int64
	// Passes: the unit runs no kernel and passes its input to the next. It is run with
	// its neighbour, and on its own copies its input.
	Passes bool
}

// Sets are the bytes of one set of saved tensors of each kind. Saved and late begin with forward:
// saved ends with the gradient of the input, late with those of the weights. Pending is between the
// two.
func (regions *Regions) Sets() (saved, late, pending int64) {
	saved, late = regions.Saved, regions.Late
	if regions.KeepsInput {
		return saved, late + regions.Input, regions.Pending
	}
	return saved + regions.Input, late, regions.Pending
}

// OnDevice are [Regions.Sets] as the arena holds them for each micro-batch.
func (regions *Regions) OnDevice() (saved, late, pending int64) {
	saved, late, pending = regions.Sets()
	if regions.Moved > 0 {
		return 0, 0, pending
	}
	return saved, late, pending
}

// Out are the bytes of a micro-batch that wait in host memory.
func (regions *Regions) Out() int64 {
	if regions.Moved == 0 {
		return 0
	}
	return regions.Input + regions.Saved + regions.Late
}

// Scratch is the scratch of a unit's passes in training. A whole backward of a schedule that splits
// others has what its halves share there too.
func (regions *Regions) Scratch(whole bool) int64 {
	backward := max(regions.Backward, regions.Learn)
	if whole {
		backward += regions.Pending
	}
	return max(regions.Forward, backward)
}

// Tie is a weight that a unit reads and another one owns.
type Tie struct {
	Owner  int    // the unit
	Tensor string // the weight's full name, there: uses of one weight agree in both
	// Sizes of the copy on a device without the owner; every use has its own Grads.
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
