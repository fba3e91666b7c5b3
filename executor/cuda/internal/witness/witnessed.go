// Package witness looks at GPUs beside the machines that run on them: what this process
// holds of the driver's, what each GPU has free, and whether that can be had.
package witness

import "time"

// Holding is what a process holds of the driver's, of one kind: "arenas", "streams".
type Holding struct {
	Kind  string `json:"kind"`
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"` // 0 of what is not counted in bytes
}

// GPU is one that is looked at.
type GPU struct {
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

// Seen is what a GPU held at a moment, in bytes. Those of NVML are null where it does
// not tell.
type Seen struct {
	DriverFree int64  // of all processes, by cuMemGetInfo
	NVMLUsed   *int64 // of all processes, without what the driver reserves
	Own        *int64 // of NVML's, this process's
}

// Refilled is what came of taking all that a GPU has free but a margin in one piece,
// writing a pattern into it, and reading that back.
type Refilled struct {
	FreeBytes   int64 // by cuMemGetInfo
	MarginBytes int64 // that was left
	Bytes       int64 // that were asked for: in whole granules; 0: nothing but the margin was free
	Took        time.Duration
	// Refused is the driver's answer where it did not give that much; nil: it did.
	Refused error
	// Wrong: other bytes were read than were written.
	Wrong bool
}
