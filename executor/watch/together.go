package watch

import (
	"fmt"
	"math"
)

// Peak is the most that processes held together: it lies between Low, the largest
// peak of one of them, and High, the largest sum of those that were there at the
// same time, as their peaks may have been at different moments. Both are equal where
// never two were there.
type Peak struct{ Low, High int64 }

// OnGPU is what the allocators of the processes on a GPU say of it themselves.
type OnGPU struct {
	Processes           int // that held memory of it
	Allocated, Reserved Peak
	OutOfMemory         int64 // how often an allocation failed for good
	Wanted              int64 // bytes of the last that failed; of several processes the largest of these
	Killed              int   // processes that had no time to say their last
}

// processSpan is a process on a GPU, from its first to its last second.
type processSpan struct {
	begin, end          float64
	allocated, reserved int64
}

// Together is what processes held, by the GPU's UUID, or by "cuda:INDEX" where
// torch tells none. A GPU that torch saw and held nothing of is there with zeros.
func Together(processes []Process) map[string]OnGPU {
	found, spans := make(map[string]OnGPU), make(map[string][]processSpan)
	for i := range processes {
		process := &processes[i]
		for j := range process.GPUs {
			gpu := &process.GPUs[j]
			key := gpu.UUID
			if key == "" {
				key = fmt.Sprintf("cuda:%d", gpu.Index)
			}
			on := found[key]
			on.OutOfMemory += gpu.OutOfMemory
			if process.Failed != nil && process.Failed.Index == gpu.Index {
				on.Wanted = max(on.Wanted, process.Failed.WantedBytes)
			}
			if gpu.ReservedPeakBytes > 0 {
				on.Processes++
				if process.At == WhileRunning {
					on.Killed++
				}
				spans[key] = append(spans[key], process.span(gpu))
			}
			found[key] = on
		}
	}
	for key, all := range spans {
		on := found[key]
		on.Allocated = peakOverlap(all, func(one *processSpan) int64 { return one.allocated })
		on.Reserved = peakOverlap(all, func(one *processSpan) int64 { return one.reserved })
		found[key] = on
	}
	return found
}

// span is a process's time on one of its GPUs. When a process that was killed ended is
// not known, so that it may have met all that came after it.
func (process *Process) span(gpu *ProcessGPU) processSpan {
	one := processSpan{begin: math.Inf(-1), end: process.WrittenSeconds, allocated: gpu.AllocatedPeakBytes, reserved: gpu.ReservedPeakBytes}
	if process.StartSeconds != nil {
		one.begin = *process.StartSeconds
	}
	if process.At == WhileRunning {
		one.end = math.Inf(1)
	}
	return one
}

// peakOverlap takes the sum of all who are there whenever one begins: between two
// beginnings none is added.
func peakOverlap(all []processSpan, bytes func(*processSpan) int64) Peak {
	var peak Peak
	for i := range all {
		peak.Low = max(peak.Low, bytes(&all[i]))
		var sum int64
		for j := range all {
			if all[j].begin <= all[i].begin && all[i].begin <= all[j].end {
				sum += bytes(&all[j])
			}
		}
		peak.High = max(peak.High, sum)
	}
	return peak
}
