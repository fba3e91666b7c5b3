package reserve

import "github.com/devmap-dev/devmap/costmodel/internal/replay"

// Process is a rank that trains.
type Process struct {
	*replay.Run
	*Decoder
	// marks are what the allocator had at most in each micro-batch, the optimizer's
	// step with it: allocated and reserved.
	marks [][2]int64
	// ranks that share states; part of the trained elements that is the rank's.
	ranks, whole, part int64
}

// workspace is cuBLAS's, one a thread: that of sm_90 (CUDABlas.cpp,
// parseChosenWorkspaceSize; torch 2.11).
const workspace = 32 << 20

func newProcess(decoder *Decoder, ranks int64) Process {
	process := Process{Run: replay.NewRun(workspace), Decoder: decoder, ranks: ranks}
	for _, weight := range decoder.Trained {
		process.whole += weight.Numel
	}
	process.part = process.share(process.whole)
	return process
}

func (process *Process) share(whole int64) int64 { return (whole + process.ranks - 1) / process.ranks }

// mark ends a micro-batch.
func (process *Process) mark() {
	cache := process.Cache
	process.marks = append(process.marks, [2]int64{cache.PeakAllocated, cache.PeakReserved})
	cache.ResetPeaks()
}

// pass runs a forward and its backward.
func (process *Process) pass(hooks replay.Hooks) { process.Forward(process.Run, hooks)() }
