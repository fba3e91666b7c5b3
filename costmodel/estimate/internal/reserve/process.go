package reserve

import "github.com/devmap-dev/devmap/costmodel/internal/replay"

// Process is a rank that trains.
type Process struct {
	*replay.Run
	*Decoder
	// marks are the most reserved bytes in each micro-batch, the last one's with the optimizer's step.
	marks []int64
	// rests are blocks' roundings in the last one: at its peak, and at its end.
	rests [2]int64
	// ranks that share states; part of the trained elements that is the rank's.
	ranks, whole, part int64
}

// Workspace is cuBLAS's for sm_90, one a thread (CUDABlas.cpp, parseChosenWorkspaceSize; torch 2.11).
const Workspace = 32 << 20

func newProcess(decoder *Decoder, ranks int64) Process {
	process := Process{Run: replay.NewRun(Workspace), Decoder: decoder, ranks: ranks}
	process.Cache.Up = decoder.up
	for _, weight := range decoder.Trained {
		weight.Grad = nil
		process.whole += weight.Numel
	}
	process.part = process.share(process.whole)
	return process
}

func (process *Process) share(whole int64) int64 { return (whole + process.ranks - 1) / process.ranks }

// mark ends a micro-batch.
func (process *Process) mark() {
	process.marks = append(process.marks, process.Cache.PeakReserved)
	process.rests = [2]int64{process.Cache.PeakRests, process.Cache.Rests}
	process.Cache.ResetPeaks()
}

// either runs a process with each new segment below earlier ones, as an H200's driver mostly does,
// and one with each above, as in gaps. A request takes the lowest of equal free blocks, so results
// may differ.
func (out *Decoder) either(run func(*Decoder) []int64) [][2]int64 {
	marks, above := pairs(run(out)), *out
	above.up = true
	for i, reserved := range run(&above) {
		marks[i] = [2]int64{min(marks[i][0], reserved), max(marks[i][1], reserved)}
	}
	return marks
}

// pairs are ranges of one figure each.
func pairs(marks []int64) (out [][2]int64) {
	for _, reserved := range marks {
		out = append(out, [2]int64{reserved, reserved})
	}
	return out
}

// pass runs a forward and its backward.
func (process *Process) pass(hooks replay.Hooks) { process.Forward(process.Run, hooks)() }
