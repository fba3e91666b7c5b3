package forward

import "cmp"

// Call is a component's call. Sizes of pictures are in pixels.
type Call struct {
	Batch         int64
	Height, Width int64
	Frames        int64 // 1 for images
	Tokens, Text  int64 // of a transformer's streams, a sequence
	Decode        bool  // of an autoencoder; else it encodes
	Tiling        bool
	Tile          int64 // the side of a tile, in pixels; 0: 512
	Slicing       bool
	// Split is the number of GPUs that share the tokens of a transformer.
	Split int64
	// Ring is the number of them that keys and values go round.
	Ring int64
	// Stage is the part of a transformer's blocks that runs; nil: all of them.
	Stage *Stage
	// CacheKV: each attention's keys and values stay when it is over.
	CacheKV bool
	// Streamed: a module's weights are brought when it runs, and taken away.
	Streamed bool
	// Grouped: a block's are.
	Grouped bool
}

// Stage is a stage of xDiT's PipeFusion during warmup: blocks [First, End) of the model's Blocks,
// over all tokens of the picture.
type Stage struct{ First, End, Blocks int }

// isFirst and isLast report the ends of the model.
func (stage *Stage) isFirst() bool { return stage == nil || stage.First == 0 }
func (stage *Stage) isLast() bool  { return stage == nil || stage.End == stage.Blocks }

// share is what one GPU has of so many tokens.
func (call Call) share(tokens int64) int64 {
	split := max(1, call.Split)
	return (tokens + split - 1) / split
}

// ShareText is one GPU's number of a prompt's tokens: all if they do not divide, and in a pipeline
// of stages (xfuser: split_text_embed_in_sp).
func (call Call) ShareText() int64 {
	if call.Text%max(1, call.Split) != 0 || call.Stage != nil {
		return call.Text
	}
	return call.share(call.Text)
}

// tile is the side of a tile.
func (call Call) tile() int64 { return cmp.Or(call.Tile, 512) }

// Cost is a forward's memory and work, without the component's own tensors.
type Cost struct {
	PeakBytes int64
	Blocks    []int64 // the peak while each block of a transformer runs
	FLOPs     float64
	Traffic   float64 // bytes read and written
}
