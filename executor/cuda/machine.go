//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
)

// machine is the devices of a program on their GPUs.
type machine struct {
	backend *backend
	program *program.Program
	bound   *bind.Bound
	trains  bool // the program has backwards
	order   order
	gpus    []*gpu
	devices []*device
	gauges  []*memoryGauge // of the GPUs; they stay behind Close
	events  []marks        // by instruction
	kept    []*prepared    // by instruction, nil where it computes nothing, or is not kept
	links   map[linkKey]*link
	linked  []*link // in the order of the first sends
	told    []executor.Link
	trap    *trap // nil: no step is to hang
	// allotted is how many arenas and other stretches of memory were asked for.
	allotted int64
	// asleep: arenas have their addresses, and no memory.
	asleep bool
	// left: GPUs are at something that does not end, or one is lost. Nothing more is
	// asked of them, and nothing given back before the process ends.
	left bool
}

// marks are the events of an instruction, nil where nobody asks for one: an event
// costs a GPU a microsecond or two. What computes and has no beginning begins where
// the instruction before it in its stream ends.
type marks struct {
	began, came, ended *driver.Event
}

func (machine *machine) Fill(number int, offset, size int64, value byte) error {
	return machine.with(number, offset, size, func(device *device) error { return device.fill(offset, size, value) })
}

func (machine *machine) Write(number int, offset int64, data []byte) error {
	return machine.with(number, offset, int64(len(data)), func(device *device) error { return device.end.Write(offset, data) })
}

func (machine *machine) Read(number int, offset int64, data []byte) error {
	return machine.with(number, offset, int64(len(data)), func(device *device) error { return device.end.Read(offset, data) })
}

// with has a device's thread do something with bytes of its arena.
func (machine *machine) with(number int, offset, size int64, call func(device *device) error) error {
	device, err := machine.place(number, offset, size)
	if err != nil || size == 0 {
		return err
	}
	return device.do(func() error { return call(device) })
}

// place is the device whose arena has bytes.
func (machine *machine) place(number int, offset, size int64) (*device, error) {
	switch {
	case machine.left:
		return nil, errors.New("GPUs are at something that does not end, or lost")
	case machine.asleep:
		return nil, errAsleep
	case number < 0 || number >= len(machine.devices):
		return nil, fmt.Errorf("device %d: no arena is open; %d are", number, len(machine.devices))
	}
	device := machine.devices[number]
	if arena := device.plan.Arena; offset < 0 || size < 0 || offset > arena-size {
		return nil, fmt.Errorf("device %d: %d bytes at %d are not in its arena of %v", number, size, offset, costmodel.Bytes(arena))
	}
	return device, nil
}

// Growth is not told: the arenas are no memory of the process's.
func (*machine) Growth() int64 { return -1 }

// prepared is what an instruction gives to its stream. It is made once for all
// instructions that do the same to the same buffers, and given again in every step.
type prepared struct {
	norms *bind.Norms
	runs  []pass
	total *bind.Total
	tails []bind.Stretch
	found []finding
}

// pass is the kernels of one unit.
type pass struct {
	before, after []bind.Copy
	calls         []*kernel.Call
	launches      []kernel.Launch // of calls
	finite        []kernel.Launch // behind them
}

// deviceOf is the device of an instruction.
func (machine *machine) deviceOf(index int32) *device {
	return machine.devices[machine.order.streams[machine.order.of[index]].device]
}

type backend struct {
	options Options
	kernels map[string]kernel.Func
	instr   func(bound *bind.Bound, index int32) (bind.Instr, error)
	shape   func(gpus int) transfer.Shape // of each of so many GPUs' rings
}

// index is a device's number.
func (machine *machine) index(device *device) int { return slices.Index(machine.devices, device) }

// on are the devices of a GPU.
func (machine *machine) on(gpu *gpu) (all []*device) {
	for _, device := range machine.devices {
		if device.gpu == gpu {
			all = append(all, device)
		}
	}
	return all
}

// allot counts what is given memory, and refuses the one that was to find none.
func (machine *machine) allot(call string) error {
	machine.allotted++
	if machine.backend.options.Fault == (Fault{FailMap, machine.allotted}) {
		return &driver.Error{Call: call + ", which was to fail", Code: driver.OutOfMemory}
	}
	return nil
}

// pin gets page-locked memory.
func (machine *machine) pin(bytes int64) (*driver.Pinned, error) {
	if err := machine.allot("cuMemHostAlloc"); err != nil {
		return nil, err
	}
	return driver.Pin(bytes)
}

// computes reports an instruction that runs kernels.
func (machine *machine) computes(index int32) bool {
	op := machine.program.Instrs[index].Op
	return op.Runs() || op == program.Step
}
