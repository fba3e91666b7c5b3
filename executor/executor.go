// Package executor runs programs. [Run] loads weights, feeds token ids, has a [Backend] run as many
// steps as the settings ask for, and reports what it measured. A program describes everything that
// happens on a device. A backend adds no byte and changes no order.
//
// Package cpu is the reference for other backends. Package weights reads and writes parameters;
// package report compares a [Result] with its plan.
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

// Backend is a kind of device that runs programs. It is an interface so that one reference checks
// the others, not for implementations of other modules.
type Backend interface {
	// Name is the backend's name for --backend.
	Name() string
	// Open reserves the arenas of all devices and sets every byte to Poison. If one
	// does not fit the error is a *MemoryError, and no arena remains reserved.
	Open(ctx context.Context, bound *bind.Bound) (Machine, error)
}

// Poison is the value of every byte of an arena before something is written. Two or four of them
// are no finite number in bf16 or fp32, and no token id. So reads of unwritten bytes show, and so
// do bytes that nothing writes.
const Poison = 0xFF

// Machine is the devices of a program. Devices are indexes in [program.Program.Devices], offsets
// begin at an arena's first byte. Fill, Write and Read are for when no step runs, and for a step's
// own callbacks on their own device.
type Machine interface {
	// Fill sets bytes [offset, offset+size) of an arena.
	Fill(device int, offset, size int64, value byte) error
	Write(device int, offset int64, data []byte) error
	Read(device int, offset int64, data []byte) error
	// Step runs the instructions of all devices except loads, zeroes and unloads, and returns when
	// the last has ended. After an error or a stop, channels are empty, and arenas are undefined
	// except for weights. A stop is not an error: it returns times.
	Step(ctx context.Context, step *Step) (*Times, error)
	// Growth is the most bytes by which the process has grown since before Open mapped arenas; -1
	// if the system does not report it.
	Growth() int64
	// Close releases the arenas.
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
	// Fence is called at every fence, on its device, which continues when it returns. ErrStop ends
	// the step.
	Fence func(instr int32) error
	// Copies returns a stretch of the device's arena that a fence is for; no bytes: it has none.
	// A fence that has one calls Copied with its bytes instead of Fence, and the device continues
	// meanwhile, up to its next fence. data is valid until Copied returns.
	Copies func(instr int32) (offset, bytes int64)
	Copied func(instr int32, data []byte) error
}

// Tap is a moment: before kernel Kernel of instruction Instr. Kernel may be the number of kernels:
// after the last. Kernels of an instruction are counted through its runs.
type Tap struct {
	Instr  int32
	Kernel int
}

// Optimizer has a step's settings (torch.optim.AdamW; SGD uses Rate and Decay).
type Optimizer struct {
	Rate, Beta1, Beta2, Epsilon, Decay float64
	// Clip is the norm that all gradients together are scaled down to
	// (torch.nn.utils.clip_grad_norm_); 0: no clipping.
	Clip float64
}

// Times are the measured times of a step.
type Times struct {
	Step    time.Duration
	Devices []DeviceTimes
}

// DeviceTimes is the time of a device's compute stream. Backward includes recompute and Weights, the
// gradients of weights of a split backward. Decode is for generated tokens, and Wait is the time
// between instructions without computing.
type DeviceTimes struct {
	Forward, Backward, Weights, Decode, Update, Wait time.Duration
}
