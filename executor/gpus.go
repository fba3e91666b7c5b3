package executor

import (
	"errors"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/costmodel/recipe"
)

// ErrNotBuilt reports that this is a build without CUDA.
var ErrNotBuilt = errors.New("this build has no CUDA support; run make cuda (Linux x86-64, C compiler)")

// GPU is a GPU that the driver shows. UUID is in NVML's form, GPU-…. Capability is NVIDIA's compute
// capability, such as 9.0.
type GPU struct{ Name, UUID, Capability string }

// GPUOptions configure a backend of GPUs.
type GPUOptions struct {
	// Devices are the GPUs by the driver's numbers, one for each device of a
	// program; empty: device i on GPU i.
	Devices []int
	// Transport is how messages go; empty: [AutoTransport].
	Transport Transport
	// Fault is provoked, to test what follows.
	Fault Fault
	// Clock is called for every step. It returns the function that receives the time of every
	// kernel when the step has ended. If either is nil, nothing is timed: timing costs some
	// microseconds a kernel.
	Clock func(step int64) func(timed KernelTime)
	// Poisoned receives the result of reading each arena that is released, after it was
	// overwritten: wrong if a byte is not poison. Devices call it concurrently. If it is nil,
	// nothing is read back.
	Poisoned func(device int32, bytes int64, wrong bool)
	// StallLimit is how long a step may go without any instruction ending before it fails
	// with a [*HangError]; 0: half a minute. It must be many times the predicted time
	// of the slowest instruction.
	StallLimit time.Duration
}

// KernelTime is the time of a kernel.
type KernelTime struct {
	Device int32 // of the plan
	Kernel *recipe.Kernel
	Took   time.Duration
}

// PathRates are the bandwidths of a GPU's copies, in bytes/s of payload. Up is from pinned host
// memory to it, and Down is back. Others are inside it and to other devices. Granule is the unit in
// which its memory is mapped, in bytes.
type PathRates struct {
	Granule          int64
	Inside, Up, Down float64
	To               []PathRate // by device; zero for the GPU itself
}

// PathRate is the bandwidth of copies from one device to another, and the latency in seconds of a
// message without bytes. Staged: messages go by way of the host, because the GPU does not reach the
// other's memory or, as Wrong says, other bytes arrive there.
type PathRate struct {
	BytesPerSecond, Latency float64
	Staged                  bool
	Wrong                   string
}

// Transport is how messages go from one device to another.
type Transport string

// The transports. Both give the same bytes, in the same slots.
const (
	AutoTransport Transport = "auto" // peer if the driver says that the GPUs reach each other and lets them, else host
	PeerTransport Transport = "peer" // from arena to arena
	HostTransport Transport = "host" // by way of pinned memory of the host
)

// Fault is a failure that is provoked.
type Fault struct {
	Kind FaultKind // empty: none
	At   int64     // which one, from 1
}

// FaultKind is what fails, and what is counted until it does.
type FaultKind string

// The kinds of faults of a GPU or its driver.
const (
	FailMap     FaultKind = "oom@map"      // no memory for an arena, or later for pinned memory
	CorruptPath FaultKind = "corrupt@path" // a byte of the check at the start changes on a path
	HangStep    FaultKind = "hang@step"    // a kernel of a step does not end
	LoseStep    FaultKind = "lose@step"    // a kernel reads unmapped memory: the last device's GPU is lost
)

// Check returns an error for unknown transports and faults.
func (options *GPUOptions) Check() error {
	switch options.Transport {
	case "", AutoTransport, PeerTransport, HostTransport:
	default:
		return fmt.Errorf("transport %q: it is auto, peer or host", options.Transport)
	}
	switch fault := options.Fault; {
	case fault == Fault{}:
	case fault.Kind != FailMap && fault.Kind != CorruptPath && fault.Kind != HangStep && fault.Kind != LoseStep:
		return fmt.Errorf("fault %q: it is %s, %s, %s or %s", fault.Kind, FailMap, CorruptPath, HangStep, LoseStep)
	case fault.At < 1:
		return fmt.Errorf("fault %s:%d: it is counted from 1", fault.Kind, fault.At)
	}
	return nil
}

// Linked is a [Machine] that knows the links of its messages.
type Linked interface {
	// Links are the links in use, as found at Open.
	Links() []Link
}

// TheHost is the end of a link at the host.
const TheHost int32 = -1

// Link is a path between two devices, or between a device and the host.
type Link struct {
	From, To  int32  // of the plan, or TheHost
	Transport string // "peer", from memory to memory, or "host", by way of the host's
	// Checked is how many bytes arrived unchanged at the start.
	Checked int64
	// Staging is how many bytes of host memory it takes.
	Staging int64
}

// Meter is a [Machine] on GPUs whose driver reports their memory in use: by all processes, arenas
// and everything else.
type Meter interface {
	// Measured are the GPUs in use. Call it once more after Close.
	Measured() []GPUResult
}

// GPUResult is the memory in use on a GPU at the moments of a run, in bytes. The driver reports it
// (NVML's used, without what the driver reserves). It is plain data: a worker sends it to its
// supervisor.
type GPUResult struct {
	GPU        int // by the driver's order
	UUID, Name string
	Devices    []int32 // devices of the plan that are on it
	Total      int64
	// Arenas is the memory mapped for arenas, in whole granules.
	Arenas int64
	// Memory before the process had a context there, with the context, with arenas and warm kernels
	// and libraries, and after Close.
	Before, Context, Ready, After int64
	// Fences is how many fences of steps were passed. FenceLow and FenceHigh are the least and the
	// most memory in use at one, 0 if there was none.
	Fences              int64
	FenceLow, FenceHigh int64
	// Tables is the size of the GPU's page tables for copies in host memory, from Ready on.
	// TablesAfter is the size at After.
	Tables, TablesAfter int64
	// Moved says which other processes came, left or changed between two of these moments, with
	// their memory; empty: none is known.
	Moved string
	// Unmeasured says why there are no figures; empty: there are.
	Unmeasured string
}
