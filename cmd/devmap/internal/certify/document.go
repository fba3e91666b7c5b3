// Package certify decides whether the GPU memory of a workload was released. It uses the process's
// own counts, the free memory of the driver and NVML, and one allocation of all free memory. After
// the process's end it uses readings from outside. It works on plain data, which the certificate
// lists with the verdict.
package certify

import (
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/report"
)

// Document is devmap.certificate/v1. Sizes are bytes; null means unknown.
type Document struct {
	FormatVersion string         `json:"format_version"`
	Verdict       report.Verdict `json:"verdict"`
	Reasons       []string       `json:"reasons"` // of the verdict, one sentence each
	Checks        []Check        `json:"checks"`
	GPUs          []GPU          `json:"gpus"`
	Cycles        []Unload       `json:"cycles"` // one entry per unload, in order
	Refill        []Refill       `json:"refill"`
	After         *After         `json:"after"` // null: there was no reading
}

// Format is the document's format.
const Format = "devmap.certificate/v1"

// Check is one of the checks that make the verdict.
type Check struct {
	Name    string         `json:"name"`
	Verdict report.Verdict `json:"verdict"`
	Detail  string         `json:"detail"`

	excused bool
}

// GPU is one GPU of the workload.
type GPU struct {
	executor.MonitoredGPU

	// Before is the usage before the process began, from outside.
	Before *Before `json:"before"`
	// Reference is the state after the first cycle and its refill. Later unloads are compared with
	// it.
	Reference *Reference `json:"reference"`
	// Others describes what other processes did on the GPU meanwhile; empty: nothing was reported.
	Others string `json:"others"`
}

// Before is a GPU's usage before the process began, by NVML or nvidia-smi.
type Before struct {
	UsedBytes   int64 `json:"used_bytes"`
	OthersBytes int64 `json:"others_bytes"` // the part that visible processes report
}

// Reference is the state of a GPU without a loaded model.
type Reference struct {
	DriverFreeBytes int64  `json:"driver_free_bytes"` // by cuMemGetInfo
	NVMLUsedBytes   *int64 `json:"nvml_used_bytes"`
	OwnBytes        *int64 `json:"own_bytes"` // this process's part of NVML's
}

// Unload is the memory left after a model was unloaded: after a turn, or after the last one when
// sleeping models are closed.
type Unload struct {
	Cycle  int64              `json:"cycle"`
	Of     int64              `json:"of"`
	Plan   string             `json:"plan"` // empty: all sleeping models
	End    string             `json:"end"`  // closed or asleep
	Ledger []executor.Holding `json:"ledger"`
	Poison []Poison           `json:"poison"`
	GPUs   []Left             `json:"gpus"`
}

// The ends of a turn.
const (
	Closed = "closed"
	Asleep = "asleep"
)

// Poison is an arena that was overwritten before its release, as the GPU read it.
type Poison struct {
	Device int32 `json:"device"` // of the plan
	Bytes  int64 `json:"bytes"`
	Wrong  bool  `json:"wrong"` // some byte differed
}

// Left is the state of a GPU after an unload: the last reading, the seconds until both figures
// matched the reference to a granule, and all readings.
type Left struct {
	GPU             int       `json:"gpu"`
	DriverFreeBytes int64     `json:"driver_free_bytes"`
	NVMLUsedBytes   *int64    `json:"nvml_used_bytes"`
	OwnBytes        *int64    `json:"own_bytes"`
	Seconds         *float64  `json:"seconds"` // null: never, or there was no reference yet
	Curve           []Reading `json:"curve"`
}

// Reading is one reading of a GPU.
type Reading struct {
	Seconds         float64 `json:"seconds"` // since the unload
	DriverFreeBytes int64   `json:"driver_free_bytes"`
	NVMLUsedBytes   *int64  `json:"nvml_used_bytes"`
}

// Refill is the result of one allocation of a GPU's free memory except for a margin.
type Refill struct {
	Cycle       int64   `json:"cycle"` // the cycle that it followed; 0: after the command
	GPU         int     `json:"gpu"`
	FreeBytes   int64   `json:"free_bytes"`
	MarginBytes int64   `json:"margin_bytes"`
	Bytes       int64   `json:"bytes"` // requested
	Seconds     float64 `json:"seconds"`
	Allocated   bool    `json:"allocated"`
	Wrong       bool    `json:"wrong"` // the bytes read differ from those written
	Error       string  `json:"error"` // the driver's error, or why there was no attempt
	// Refused: the driver refused that many bytes.
	Refused bool `json:"refused"`
}

// After is the state seen from outside after the process had ended.
type After struct {
	Ended   string  `json:"ended"`   // how it ended, as the system reports it
	Seconds float64 `json:"seconds"` // duration of the readings
	Source  string  `json:"source"`  // of the readings
	// PrecisionBytes: readings are multiples of it.
	PrecisionBytes int64       `json:"precision_bytes"`
	GPUs           []AfterGPU  `json:"gpus"`
	Alive          []Remaining `json:"alive"` // its processes that are still on a GPU
	// Shown: while it ran, the driver showed the process, or one of its children, on a GPU.
	Shown bool `json:"shown"`
	// Unmeasured says why there are no readings; empty: there are.
	Unmeasured string `json:"unmeasured"`
}

// AfterGPU is a GPU after the process had ended.
type AfterGPU struct {
	GPU             int    `json:"gpu"`
	UUID            string `json:"uuid"`
	UsedBytes       int64  `json:"used_bytes"`
	DifferenceBytes int64  `json:"difference_bytes"` // more than before
}

// Remaining is a process that should have ended.
type Remaining struct {
	GPU       int    `json:"gpu"`
	Process   int    `json:"process"`
	UsedBytes *int64 `json:"used_bytes"`
}
