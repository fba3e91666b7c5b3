// Package certify judges whether what was loaded onto GPUs is gone from them: by what
// the process counts, by what the driver and NVML have free, by taking all free memory
// once, and from outside after the process has ended. It judges plain data, and the
// certificate has all of it with the verdict.
package certify

import (
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/report"
)

// Document is devmap.certificate/v1. Bytes; null: not known.
type Document struct {
	FormatVersion string         `json:"format_version"`
	Verdict       report.Verdict `json:"verdict"`
	Reasons       []string       `json:"reasons"` // of the verdict, a sentence each
	Checks        []Check        `json:"checks"`
	GPUs          []GPU          `json:"gpus"`
	Cycles        []Unload       `json:"cycles"` // an entry an unload, in their order
	Refill        []Refill       `json:"refill"`
	After         *After         `json:"after"` // null: it was not looked at
}

// Format is the document's.
const Format = "devmap.certificate/v1"

// Check is one of those that the verdict is made of.
type Check struct {
	Name    string         `json:"name"`
	Verdict report.Verdict `json:"verdict"`
	Detail  string         `json:"detail"`

	excused bool
}

// GPU is one that was used.
type GPU struct {
	executor.MonitoredGPU

	// Before is what it held before the process began, seen from outside.
	Before *Before `json:"before"`
	// Reference is what it had when the first cycle was over, its refill included.
	// Later unloads are compared with it.
	Reference *Reference `json:"reference"`
	// Others is what other processes on it did meanwhile; empty: nothing was reported.
	Others string `json:"others"`
}

// Before is what a GPU held before the process began, by NVML or nvidia-smi.
type Before struct {
	UsedBytes   int64 `json:"used_bytes"`
	OthersBytes int64 `json:"others_bytes"` // of it, what processes that are shown say
}

// Reference is what a GPU has while no model is loaded.
type Reference struct {
	DriverFreeBytes int64  `json:"driver_free_bytes"` // by cuMemGetInfo
	NVMLUsedBytes   *int64 `json:"nvml_used_bytes"`
	OwnBytes        *int64 `json:"own_bytes"` // of NVML's, what this process holds
}

// Unload is the memory that was left when a model went: after a turn, or after the last
// one if sleeping models are closed.
type Unload struct {
	Cycle  int64              `json:"cycle"`
	Of     int64              `json:"of"`
	Plan   string             `json:"plan"` // empty: of all that slept
	End    string             `json:"end"`  // closed, asleep
	Ledger []executor.Holding `json:"ledger"`
	Poison []Poison           `json:"poison"`
	GPUs   []Left             `json:"gpus"`
}

// The ends of a turn.
const (
	Closed = "closed"
	Asleep = "asleep"
)

// Poison is an arena that was overwritten before it was released, as the GPU read it.
type Poison struct {
	Device int32 `json:"device"` // of the plan
	Bytes  int64 `json:"bytes"`
	Wrong  bool  `json:"wrong"` // it was not that in every byte
}

// Left is a GPU behind an unload: what it had at the last look, how many seconds behind
// the unload it had by both figures what the reference has, but for a granule, and all
// looks.
type Left struct {
	GPU             int       `json:"gpu"`
	DriverFreeBytes int64     `json:"driver_free_bytes"`
	NVMLUsedBytes   *int64    `json:"nvml_used_bytes"`
	OwnBytes        *int64    `json:"own_bytes"`
	Seconds         *float64  `json:"seconds"` // null: never, or there was no reference yet
	Curve           []Reading `json:"curve"`
}

// Reading is a look at a GPU.
type Reading struct {
	Seconds         float64 `json:"seconds"` // since the unload
	DriverFreeBytes int64   `json:"driver_free_bytes"`
	NVMLUsedBytes   *int64  `json:"nvml_used_bytes"`
}

// Refill is what came of taking all that a GPU had free but a margin in one piece.
type Refill struct {
	Cycle       int64   `json:"cycle"` // it was at its end; 0: when the command had ended
	GPU         int     `json:"gpu"`
	FreeBytes   int64   `json:"free_bytes"`
	MarginBytes int64   `json:"margin_bytes"`
	Bytes       int64   `json:"bytes"` // that were asked for
	Seconds     float64 `json:"seconds"`
	Allocated   bool    `json:"allocated"`
	Wrong       bool    `json:"wrong"` // other bytes were read than were written
	Error       string  `json:"error"` // the driver's, where it refused; why it could not be tried
	// Refused: it is the driver's answer to being asked for that much.
	Refused bool `json:"refused"`
}

// After is what was seen from outside when the process had ended.
type After struct {
	Ended   string  `json:"ended"`   // how, in the system's words
	Seconds float64 `json:"seconds"` // how long GPUs were looked at
	Source  string  `json:"source"`  // by what
	// PrecisionBytes: readings are whole multiples of it.
	PrecisionBytes int64       `json:"precision_bytes"`
	GPUs           []AfterGPU  `json:"gpus"`
	Alive          []Remaining `json:"alive"` // processes that are its and on a GPU still
	// Shown: while it ran the driver showed the process, or one of its, on a GPU.
	Shown bool `json:"shown"`
	// Unmeasured is why nothing was seen; empty: it was.
	Unmeasured string `json:"unmeasured"`
}

// AfterGPU is a GPU when the process had ended.
type AfterGPU struct {
	GPU             int    `json:"gpu"`
	UUID            string `json:"uuid"`
	UsedBytes       int64  `json:"used_bytes"`
	DifferenceBytes int64  `json:"difference_bytes"` // more than before
}

// Remaining is a process that should not be there.
type Remaining struct {
	GPU       int    `json:"gpu"`
	Process   int    `json:"process"`
	UsedBytes *int64 `json:"used_bytes"`
}
