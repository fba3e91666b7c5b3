package executor

import "time"

// GPUMonitor measures GPUs independently of the machines that run on them, from inside the process.
// It says which driver objects the process has, and how much memory each GPU has free.
type GPUMonitor interface {
	GPUs() []MonitoredGPU
	// Holdings are the process's allocations, without the monitor's own.
	Holdings() []Holding
	// Look reads every GPU.
	Look() ([]MemoryReading, error)
	// Refill allocates all free memory of a GPU except a margin, for a moment.
	Refill(gpu int, margin int64) (RefillResult, error)
	Close() error
}

// Holding is what a process has of one kind of the driver's objects: "arenas", "streams".
type Holding struct {
	Kind  string `json:"kind"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"` // 0 if the kind has no size
}

// MonitoredGPU is a GPU that a [GPUMonitor] measures.
type MonitoredGPU struct {
	GPU          int    `json:"gpu"` // by the driver's order
	UUID         string `json:"uuid"`
	Name         string `json:"name"`
	GranuleBytes int64  `json:"granule_bytes"` // the unit in which memory is mapped
	// Process is this process's number for the driver, in a container another than its own; 0: the
	// driver does not show it.
	Process int `json:"process"`
	// Unmeasured says why NVML has no figures of the GPU; empty: it has.
	Unmeasured string `json:"unmeasured"`
}

// MemoryReading is the memory of a GPU at a moment, in bytes. NVML's figures are nil if it does not
// report them.
type MemoryReading struct {
	DriverFree int64  // of all processes, by cuMemGetInfo
	NVMLUsed   *int64 // of all processes, without what the driver reserves
	Own        *int64 // of NVML's, this process's
}

// RefillResult is the result of a refill. A refill allocates all free memory of a GPU except a
// margin in one piece, writes a pattern into it and reads it back.
type RefillResult struct {
	FreeBytes   int64 // by cuMemGetInfo
	MarginBytes int64 // that was left
	Bytes       int64 // requested, in whole granules; 0: only the margin was free
	Took        time.Duration
	// Refused is the driver's error if it did not allocate that much; nil: it did.
	Refused error
	// Wrong: other bytes were read than were written.
	Wrong bool
}
