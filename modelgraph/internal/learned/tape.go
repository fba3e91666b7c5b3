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

// Steps are a layer's tapes by kind of step: infer, train or recompute, the last two also with
// " drops", if the caller keeps the loss alone.
type Steps map[string]*Tape

// Step is the tape of a kind, or nil.
func (steps Steps) Step(train, recompute, drops bool) *Tape {
	kind := "infer"
	if train {
		kind = map[bool]string{false: "train", true: "recompute"}[recompute] + map[bool]string{true: " drops"}[drops]
	}
	return steps[kind]
}

// Tape is what a layer does to the memory of one GPU in a step in bf16, without what the
// layers before it keep.
type Tape struct {
	// Rank is the layer's place among the layers that run.
	Rank int
	// Batch is the least number of sequences that it holds for, Least and Most bound their tokens.
	Batch, Least, Most int64
	// Saved stays until the layer's backward, or until the end (a cache). The model returns Returned.
	Saved, Returned Storages
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
