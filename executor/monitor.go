package executor

import "time"

// GPUMonitor measures GPUs independently of the machines that run on them, from inside
// the process: which driver objects the process has, and how much each GPU has free.
type GPUMonitor interface {
	GPUs() []MonitoredGPU
	// Holdings are what the process has allocated, without the monitor's own.
	Holdings() []Holding
	// Look reads every GPU.
	Look() ([]MemoryReading, error)
	// Refill takes all that one of the GPUs has free but a margin, for a moment.
	Refill(gpu int, margin int64) (RefillResult, error)
	Close() error
}

// Holding is what a process holds of the driver's, of one kind: "arenas", "streams".
type Holding struct {
	Kind  string `json:"kind"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"` // 0 of what is not counted in bytes
}

// MonitoredGPU is a GPU that a [GPUMonitor] measures.
type MonitoredGPU struct {
	GPU          int    `json:"gpu"` // by the driver's order
	UUID         string `json:"uuid"`
	Name         string `json:"name"`
	GranuleBytes int64  `json:"granule_bytes"` // what memory is mapped in
	// Process is this process's number as the driver shows it, inside a container
	// another than its own; 0: it shows this process not.
	Process int `json:"process"`
	// Unmeasured is why NVML tells nothing of the GPU; empty: it does.
	Unmeasured string `json:"unmeasured"`
}

// MemoryReading is what a GPU held at a moment, in bytes. Those of NVML are null where it does
// not tell.
type MemoryReading struct {
	DriverFree int64  // of all processes, by cuMemGetInfo
	NVMLUsed   *int64 // of all processes, without what the driver reserves
	Own        *int64 // of NVML's, this process's
}

// RefillResult is what came of taking all that a GPU has free but a margin in one piece,
// writing a pattern into it, and reading that back.
type RefillResult struct {
	FreeBytes   int64 // by cuMemGetInfo
	MarginBytes int64 // that was left
	Bytes       int64 // that were asked for: in whole granules; 0: nothing but the margin was free
	Took        time.Duration
	// Refused is the driver's answer where it did not give that much; nil: it did.
	Refused error
	// Wrong: other bytes were read than were written.
	Wrong bool
}
