// Package learned has the memory of a layer's forward as a table of types gives it: each
// storage is a sum of factors of a batch and a length.
package learned

// Storages are numbers of storages of a size: bytes as factors of 1, batch, batch·seq,
// batch·seq², seq and seq².
type Storages = []struct {
	Count int64
	Size  [6]int64
}

// Tape is what a layer does to the memory of one GPU in a forward without gradients, in
// bf16, without what the layers before it keep.
type Tape struct {
	// Rank is the layer's place among the layers that run.
	Rank int
	// Least and Most bound the tokens of a sequence that it holds for.
	Least, Most int64
	// Saved stays until the end (a cache), the model returns Returned.
	Saved, Returned Storages
	// Forward are its largest moments.
	Forward []Moment
	// Copied is what another layer saves that it reads too, by that layer: another GPU has a
	// copy.
	Copied map[string]Storages
	// Products reports matrix products.
	Products bool
}

// Moment is what exists at once. Past is what the layer's unit has nothing to do with, by
// the layer on whose GPU it is.
type Moment struct {
	Bytes Storages
	Past  map[string]Storages
}
