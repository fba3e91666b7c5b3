package watch

import (
	"fmt"
	"math"
)

// Peak bounds the most memory that processes had together, as their peaks may be of different
// moments. Low is the largest peak of one of them. High is the largest sum of those that ran at the
// same time. Both are equal if no two ran at once.
type Peak struct{ Low, High int64 }

// OnGPU is what the allocators of the processes on a GPU report.
type OnGPU struct {
	Processes           int // that held memory of it
	Allocated, Reserved Peak
	OutOfMemory         int64 // how often an allocation failed for good
	Wanted              int64 // bytes of the last failed allocation, the largest of all processes
	Killed              int   // processes that were killed before their last report
}

// processSpan is a process on a GPU, from its first to its last second.
type processSpan struct {
	begin, end          float64
	allocated, reserved int64
}

// Together returns the memory of processes by the GPU's UUID, or by "cuda:INDEX" if torch reports
// none. A GPU that torch saw without using memory there has zeros.
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

// span returns a process's time on one of its GPUs. The end of a process that was killed is not
// known, so that it may have overlapped everything that came after it.
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

// peakOverlap takes the sum of all processes at each start of one: none is added between two
// starts.
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
