// Package executor runs programs: [Run] loads weights, feeds token ids, has a
// [Backend] run as many steps as the settings ask for, and reports what it measured.
// A program says everything that happens on a device; a backend adds nothing of
// its own to it, no byte and no order.
//
// Package cpu is the backend that judges others. Package weights is where
// parameters come from and go to; package report compares a [Result] with its plan.
package executor

import (
	"context"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Job is a program with what it was compiled from.
type Job struct {
	Graph    *modelgraph.Graph
	Workload *costmodel.Workload // resolved, of devmap's own engine
	Recipe   *recipe.Model       // of that graph and workload
	Program  *program.Program    // without a fault
}

// Backend is a kind of device that runs programs. It is an interface so that
// one reference judges the others, not for implementations from elsewhere.
type Backend interface {
	// Name is what --backend calls it.
	Name() string
	// Open reserves the arenas of all devices and sets every byte to Poison. If one
	// does not fit the error is a *MemoryError, and no arena remains reserved.
	Open(ctx context.Context, bound *bind.Bound) (Machine, error)
}

// Poison is what every byte of an arena is before something is written. Two or
// four of them are no finite number in bf16 or fp32, and no token id: what is
// read before it is written shows, and so does what never was.
const Poison = 0xFF

// Machine is the devices of a program. Devices are counted as in
// [program.Program.Devices], offsets from the beginning of an arena. Fill,
// Write and Read are for when no step runs, and for a step's own callbacks on
// their own device.
type Machine interface {
	// Fill sets bytes [offset, offset+size) of an arena.
	Fill(device int, offset, size int64, value byte) error
	Write(device int, offset int64, data []byte) error
	Read(device int, offset int64, data []byte) error
	// Step runs the instructions of all devices but loads, zeroes and
	// unloads, and returns when the last has ended. After an error or a stop
	// channels are empty, and what arenas hold is undefined but for weights. A
	// stop is no error: there are times then.
	Step(ctx context.Context, step *Step) (*Times, error)
	// Growth is by how many bytes the process has grown at most since before
	// Open mapped arenas; -1 where the system does not tell.
	Growth() int64
	// Close gives the arenas back.
	Close() error
}

// Step is one step of a program.
type Step struct {
	// Number counts from 1: AdamW's t.
	Number    int64
	Optimizer Optimizer
	// Taps are called on their device, in the order of its instructions, before
	// the kernel of an instruction that they name.
	Taps map[Tap]func() error
	// Fence is called at every fence, on its device. ErrStop ends the step.
	Fence func(instr int32) error
}

// Tap is a moment: before kernel Kernel of instruction Instr, which may be one
// more than it has. Kernels of an instruction are counted through its runs.
type Tap struct {
	Instr  int32
	Kernel int
}

// Optimizer is what a step's kernels take in addition to tensors
// (torch.optim.AdamW; SGD takes Rate and Decay).
type Optimizer struct {
	Rate, Beta1, Beta2, Epsilon, Decay float64
	// Clip is the norm that all gradients together are scaled down to
	// (torch.nn.utils.clip_grad_norm_); 0: they are taken as they are.
	Clip float64
}

// Times are those of a step.
type Times struct {
	Step    time.Duration
	Devices []DeviceTimes
}

// DeviceTimes is what a device's compute stream spent its time with: Backward
// with recompute, Decode with tokens, Wait with everything that was not there yet.
type DeviceTimes struct {
	Forward, Backward, Decode, Update, Wait time.Duration
}
