package executor

import (
	"errors"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/costmodel/recipe"
)

// ErrNotBuilt says that this is a build without CUDA.
var ErrNotBuilt = errors.New("this build has no CUDA support; run make cuda (Linux x86-64, C compiler)")

// GPU is one that the driver shows. UUID is as NVML writes it: GPU-…; Capability
// is NVIDIA's compute capability: 9.0.
type GPU struct{ Name, UUID, Capability string }

// GPUOptions are how a backend of GPUs runs programs.
type GPUOptions struct {
	// Devices are the GPUs by the driver's numbers, one for each device of a
	// program; empty: device i on GPU i.
	Devices []int
	// Transport is how messages go; empty: [AutoTransport].
	Transport Transport
	// Fault is made to happen, to see what follows.
	Fault Fault
	// Clock returns the function that receives the time of every kernel when the step
	// has ended. nil, here or for a step: nothing is timed, as timing costs some
	// microseconds a kernel.
	Clock func(step int64) func(timed KernelTime)
	// Poisoned receives the result of reading each arena that is released, after it was
	// overwritten: wrong if a byte is not poison. Devices call it concurrently; nil:
	// nothing is read back.
	Poisoned func(device int32, bytes int64, wrong bool)
	// StallLimit is how long a step may go without any instruction ending before it fails
	// with a [*HangError]; 0: half a minute. It must be many times the predicted time
	// of the slowest instruction.
	StallLimit time.Duration
}

// KernelTime is what a kernel took.
type KernelTime struct {
	Device int32 // of the plan
	Kernel *recipe.Kernel
	Took   time.Duration
}

// PathRates are what copies from a GPU carry, in bytes/s of payload: inside it,
// from pinned memory of the host to it (Up) and back, and to other devices.
// Granule is what memory of it is mapped in, in bytes.
type PathRates struct {
	Granule          int64
	Inside, Up, Down float64
	To               []PathRate // by device; zero for the GPU itself
}

// PathRate is what copies from one device to another carry, and how many seconds
// later than it was sent a message without bytes would be there. Staged: messages go by
// way of the host, as the GPU does not reach the other's memory or, as Wrong says, other
// bytes arrive there.
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

// Fault is something that goes wrong because it was asked for.
type Fault struct {
	Kind FaultKind // empty: none
	At   int64     // which one, from 1
}

// FaultKind is what goes wrong, and what is counted until it does.
type FaultKind string

// The kinds of faults of a GPU or its driver.
const (
	FailMap     FaultKind = "oom@map"      // there is no memory for an arena, or behind these for pinned memory
	CorruptPath FaultKind = "corrupt@path" // a byte of what a path carries at the start's check is another one
	HangStep    FaultKind = "hang@step"    // a kernel of a step does not end
	LoseStep    FaultKind = "lose@step"    // a kernel of a step touches what is not there, on the last device: its GPU's context is no more
)

// Check refuses unknown transports and faults.
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

// Linked is a [Machine] whose messages go over links that it knows.
type Linked interface {
	// Links are those in use, as they were found at Open.
	Links() []Link
}

// TheHost is the end of a link at the host.
const TheHost int32 = -1

// Link is a way that bytes take from one device to another, or between one and the
// host.
type Link struct {
	From, To  int32  // of the plan, or TheHost
	Transport string // peer: from memory to memory; host: by way of the host's
	// Checked is how many bytes it carried at the start that were what was sent.
	Checked int64
	// Staging is how many bytes of the host's memory it takes.
	Staging int64
}

// Meter is a [Machine] on GPUs, whose driver tells what they hold: of all
// processes, arenas and everything else.
type Meter interface {
	// Measured are the GPUs in use, once more after Close.
	Measured() []GPUResult
}

// GPUResult is what a GPU held at the moments of a run, in bytes, as its driver
// says (NVML's used, without what the driver reserves). It is plain data: a worker
// sends it on.
type GPUResult struct {
	GPU        int // by the driver's order
	UUID, Name string
	Devices    []int32 // of the plan, that are on it
	Total      int64
	// Arenas is what of it is mapped for arenas, in whole granules.
	Arenas int64
	// Before the process had a context there; with the context; with arenas,
	// kernels and libraries that are warm; and behind Close.
	Before, Context, Ready, After int64
	// Fences is how many fences of steps were passed, FenceLow and FenceHigh the
	// least and the most that the GPU held at one; 0 where none was.
	Fences              int64
	FenceLow, FenceHigh int64
	// Tables is what the GPU's page tables take for copies that are kept in the host's
	// memory, from Ready on; TablesAfter with After.
	Tables, TablesAfter int64
	// Moved says what other processes came, went or changed by between two of
	// these moments; empty: nothing is known to have.
	Moved string
	// Unmeasured is why nothing of this is known; empty: it is.
	Unmeasured string
}
