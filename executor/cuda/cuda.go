// Package cuda runs programs on NVIDIA GPUs. A device of a program is an arena on
// a GPU, mapped and never allocated, with a thread of its own that gives the GPU's
// queues what the program's streams have: several devices may be on one GPU, each
// with its own arena. What one device makes another one sees in a slot that it
// received, and nowhere else.
//
// It is built with the tag cuda, on Linux for x86-64 with cgo, and needs no CUDA
// toolkit for that; what it runs on is found when it opens.
package cuda

import "time"

// Options are how programs are run.
type Options struct {
	// Devices are the GPUs by the driver's numbers, one for each device of a
	// program; empty: device i on GPU i.
	Devices []int
	// FailMap is the arena, from 1, for which there is said to be no memory, to see
	// what follows; 0: none.
	FailMap int
	// Patience is how long nothing may end anywhere in a step before it is given up
	// with a [*HangError]; 0: half a minute.
	Patience time.Duration
}

// HangError is a step in which nothing ended for longer than was to be waited. What
// the GPUs were given cannot be taken back: the process is to end.
type HangError struct {
	After time.Duration
	Stand string // where every stream is, a line each
}

func (err *HangError) Error() string {
	return "nothing ended on any GPU for " + err.After.String() + ":\n" + err.Stand
}
