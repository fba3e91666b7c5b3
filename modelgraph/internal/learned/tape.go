// Package learned has the memory of a layer's step as a table of types gives it. Each storage is a
// sum of factors of a batch and a length, or a kernel's rule of such sums.
package learned

// Storages are numbers of storages of a size: bytes as factors of 1, batch, batch·seq,
// batch·seq², seq and seq². If Rule is not empty, a kernel has it for the sizes Of
// (costmodel/internal/ops/cost.go).
type Storages = []struct {
	Count int64
	Size  [6]int64
	Rule  string
	Of    [][6]int64
}

// Asked is a step that a tape is wanted for.
type Asked = struct {
	// Step is infer, train or recompute, the last two also with " drops", if the caller keeps the loss
	// alone.
	Step string
	// Kind is how it computes: "" in bf16, "fp32", "autocast", or "lora" with adapters of Rank in fp32.
	Kind string
	Rank int64
	// Eager: scores are in memory, as the user wants it.
	Eager      bool
	Batch, Seq int64
	// Alone: one GPU has the whole model.
	Alone bool
}

// Source finds the tapes of all layers of a graph, by the layers' places when it was made. Nil: no
// tape holds.
type Source interface {
	Tapes(Asked) []*Tape
	// Requests are those of the same step, nil if their order is not known.
	Requests(Asked) *Requests
}

// Requests are births and deaths of a step's storages, in order. Sizes have one storage each.
type Requests struct {
	Sizes  Storages
	Events []Request
}

// Request is a birth, and At is the number of its size; or an end, and At is the number of its birth, from 0.
type Request = struct {
	What byte
	At   int32
}

// Values of What. Tables also have workspaces of threads (s) and kernels (t), inputs (i) and gradients (g).
const (
	Gone    byte = 0   // an end
	Passing byte = ' ' // a storage that ends within the step
	Output  byte = 'o' // a result
	Dropped byte = 'd' // a result that ends in the step if the caller keeps the loss alone
)

// Steps are a layer's tapes. The zero value has none.
type Steps struct {
	Source Source
	Layer  int
	// Alone: they are for a model on one GPU.
	Alone bool
}

// Step is the tape of a step, or nil.
func (steps Steps) Step(asked Asked) *Tape {
	if steps.Source == nil {
		return nil
	}
	if all := steps.Source.Tapes(asked); steps.Layer < len(all) {
		return all[steps.Layer]
	}
	return nil
}

// Requests are those of the step that a layer has a tape of, or nil.
func (steps Steps) Requests(asked Asked) *Requests {
	if steps.Source == nil {
		return nil
	}
	return steps.Source.Requests(asked)
}

// Tape is what a layer does to the memory of one GPU in a step.
type Tape struct {
	// Rank is the layer's place among the layers that run.
	Rank int
	*Part
}

// Part is the memory, without what the layers before it keep. Layers may share it.
type Part struct {
	// Saved stays until the layer's backward, or until the end (a cache). The model returns Returned.
	Saved, Returned Storages
	// Lasting is from the layer's backward to the end of the step: gradients of tensors that are not
	// parameters.
	Lasting Storages
	// Forward are its largest moments. Those of Backward are without Saved and Returned. Backward
	// has the layer's gradients, Accumulate only those of the last call.
	Forward, Backward, Accumulate Moments
	// Copied is what another layer saves that it reads too, by that layer: another GPU has a
	// copy.
	Copied map[string]Storages
	// Products reports matrix products.
	Products bool
}

// Moments are what exists at once. Past is what the layer's unit has nothing to do with, by
// the layer on whose GPU it is.
type Moments = []struct {
	Bytes Storages
	Past  map[string]Storages
}
