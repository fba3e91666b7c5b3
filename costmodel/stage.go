package costmodel

// StageCosts is what a pipeline's stage adds to its units (torch 2.11,
// distributed/pipelining/stage.py).
type StageCosts struct {
	// Rotary are the cosines and sines that a stage makes for each
	// micro-batch and all its blocks share.
	Rotary int64
}

// Interval is the units [First, End) of a chain.
type Interval struct{ First, End int }
