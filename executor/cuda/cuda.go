// Package cuda runs programs on NVIDIA GPUs. A device of a program is an arena on
// a GPU, mapped and never allocated, with a thread of its own that gives the GPU's
// queues what the program's streams have: several devices may be on one GPU, each
// with its own arena. What one device makes another one sees in a slot that it
// received, and nowhere else.
//
// It is built with the tag cuda, on Linux for x86-64 with cgo, and needs no CUDA
// toolkit for that; what it runs on is found when it opens.
package cuda

import (
	"errors"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/cuda/internal/witness"
)

// ErrNotBuilt says that this is a build without CUDA.
var ErrNotBuilt = errors.New("this devmap was built without CUDA: make cuda builds one with it, on Linux for x86-64 with a C compiler")

// GPU is one that the driver shows. UUID is as NVML writes it: GPU-…; Capability
// is NVIDIA's compute capability: 9.0.
type GPU struct{ Name, UUID, Capability string }

// Witness looks at GPUs beside the machines that run on them.
type Witness = witness.Witness

// Witnessed is a GPU that a [Witness] looks at.
type Witnessed = witness.GPU

// Holding is what a [Witness] says that the process holds of a kind.
type Holding = witness.Holding

// Seen is what a [Witness] saw of a GPU at a moment.
type Seen = witness.Seen

// Refilled is what came of a [Witness]'s refill.
type Refilled = witness.Refilled

// Options are how programs are run.
type Options struct {
	// Devices are the GPUs by the driver's numbers, one for each device of a
	// program; empty: device i on GPU i.
	Devices []int
	// Transport is how messages go; empty: [Auto].
	Transport Transport
	// Fault is made to happen, to see what follows.
	Fault Fault
	// Clock says who is told of every kernel of a step what it took, when the step
	// has ended; nil, or none for a step: nothing is timed, which costs some
	// microseconds a kernel.
	Clock func(step int64) func(timed Timed)
	// Poisoned is told of each arena that is given back what reading it found, which is
	// overwritten then: wrong is that not every byte is poison. Devices call it all at
	// once; nil: nothing is read back.
	Poisoned func(device int32, bytes int64, wrong bool)
	// Patience is how long nothing may end anywhere in a step before it is given up
	// with a [*HangError]; 0: half a minute. It is to be many times what the slowest
	// instruction is predicted to take.
	Patience time.Duration
}

// Timed is a kernel that ran.
type Timed struct {
	Device int32 // of the plan
	Kernel *recipe.Kernel
	Took   time.Duration
}

// PathRates are what copies from a GPU carry, in bytes/s of payload: inside it,
// from page-locked memory of the host to it (Up) and back, and to other devices.
// Granule is what memory of it is mapped in, in bytes.
type PathRates struct {
	Granule          int64
	Inside, Up, Down float64
	To               []PathRate // by device; of itself nothing
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
	Auto Transport = "auto" // Peer where the driver says that the GPUs reach each other and lets them, else Host
	Peer Transport = "peer" // from arena to arena
	Host Transport = "host" // by way of page-locked memory of the host
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

// check finds what is no option.
func (options *Options) check() error {
	switch options.Transport {
	case "", Auto, Peer, Host:
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
