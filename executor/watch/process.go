package watch

import "fmt"

// Process is the report of one process of a command. It says what memory torch's allocator had on
// each GPU. torch counts every allocation, so that all are in the peaks.
type Process struct {
	PID       int      `json:"pid"`
	Parent    int      `json:"parent"`
	Arguments []string `json:"arguments"` // the first hundred, a thousand letters each
	At        Moment   `json:"at"`
	// StartSeconds is when it initialised CUDA, null if it did not, and WrittenSeconds when it
	// wrote this report, in seconds since 1970.
	StartSeconds   *float64 `json:"begun_seconds"`
	WrittenSeconds float64  `json:"written_seconds"`
	Torch          string   `json:"torch"`     // its version
	Allocator      string   `json:"allocator"` // native, cudaMallocAsync
	// Visible is CUDA_VISIBLE_DEVICES when CUDA was initialised; null: not set.
	Visible *string      `json:"visible"`
	GPUs    []ProcessGPU `json:"gpus"`
	// Failed is the last allocation that the allocator refused; null: none.
	Failed *FailedAllocation `json:"failed"`
	// SnapshotError says why torch left no snapshot although one was requested.
	SnapshotError string `json:"snapshot_error"`
}

// Moment is when a process wrote its report.
type Moment string

// A process that is killed, or becomes another program, writes no report at its end: its last
// report while running counts.
const (
	AtExit        Moment = "exit"
	AtOutOfMemory Moment = "out of memory" // it ended with an error of a GPU's memory
	WhileRunning  Moment = "running"
)

// ProcessGPU is a GPU that torch saw in a process.
type ProcessGPU struct {
	Index              int    `json:"index"` // cuda:INDEX of that process
	UUID               string `json:"uuid"`  // empty: this torch does not report it
	AllocatedPeakBytes int64  `json:"allocated_peak_bytes"`
	ReservedPeakBytes  int64  `json:"reserved_peak_bytes"`
	AllocatedBytes     int64  `json:"allocated_bytes"` // at the time of the report
	ReservedBytes      int64  `json:"reserved_bytes"`
	OutOfMemory        int64  `json:"out_of_memory"` // allocations that failed
	Retries            int64  `json:"retries"`       // allocations that succeeded once the pool was emptied
}

// FailedAllocation is an allocation that found no memory.
type FailedAllocation struct {
	Index       int   `json:"index"` // cuda:INDEX
	WantedBytes int64 `json:"wanted_bytes"`
	FreeBytes   int64 `json:"free_bytes"` // of the GPU, by the driver
}

// Untold says why torch's memory in a command is not known, or which part is missing; empty:
// nothing is.
func Untold(processes []Process) string {
	imported := ""
	for i := range processes {
		process := &processes[i]
		switch {
		case process.SnapshotError != "":
			return fmt.Sprintf("process %d left no snapshot of torch's memory: %s", process.PID, process.SnapshotError)
		case len(process.GPUs) > 0:
			return ""
		case process.StartSeconds != nil:
			imported = fmt.Sprintf("torch's allocator (%s) tells nothing of what it held", process.Allocator)
		case imported == "":
			imported = "torch was imported, and used no GPU"
		}
	}
	if imported != "" {
		return imported
	}
	return "no PyTorch data: no process imported torch, or Python ran with -S, -I or -E"
}
