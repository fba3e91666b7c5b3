//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
)

// New is the GPUs' backend. The driver is not looked for before Open.
func New(options Options) (executor.Backend, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	if options.Patience == 0 {
		options.Patience = 30 * time.Second
	}
	kernels, err := kernel.Table()
	if err != nil {
		return nil, err
	}
	return &backend{options, kernels, (*bind.Bound).Instr, transfer.ShapeFor}, nil
}

func (*backend) Name() string { return "cuda" }

// Open takes part in the GPUs' contexts, loads kernels, looks at what is free
// then, and only when all arenas find room maps the first. Then it makes everything
// that steps use, sends bytes over every path, and runs every kernel once.
func (backend *backend) Open(ctx context.Context, bound *bind.Bound) (executor.Machine, error) {
	machine := &machine{
		backend: backend, program: bound.Program, bound: bound, order: orderOf(bound.Program),
		trains: slices.ContainsFunc(bound.Program.Instrs, func(instr program.Instr) bool { return instr.Op == program.Backward }),
	}
	err := machine.find()
	for _, part := range []func() error{
		machine.start, machine.measure, machine.room, machine.pinRings, machine.connect, machine.reserve, machine.stage, machine.marks,
		machine.trials, machine.keep, machine.warm, machine.prime, machine.dig, machine.ready, ctx.Err,
	} {
		if err == nil {
			err = part()
		}
	}
	if err != nil {
		return nil, errors.Join(err, machine.Close())
	}
	return machine, nil
}

// find gives every device of the program its GPU.
func (machine *machine) find() error {
	_, _ = unused() // before the driver is there: what it says is asked for again
	if err := driver.Open(); err != nil {
		return err
	}
	gpus, err := driver.Devices()
	if err != nil {
		return err
	}
	asked := machine.backend.options.Devices
	if len(asked) != 0 && len(asked) != len(machine.program.Devices) {
		return fmt.Errorf("%d GPUs are named for a program of %d devices: name one for each", len(asked), len(machine.program.Devices))
	}
	shared := make(map[int]*gpu)
	for i := range machine.program.Devices {
		ordinal := i
		if len(asked) != 0 {
			ordinal = asked[i]
		}
		if ordinal < 0 || ordinal >= len(gpus) {
			return fmt.Errorf("device %d is to be on GPU %d, and the driver shows %d", machine.program.Devices[i].ID, ordinal, len(gpus))
		}
		if shared[ordinal] == nil {
			shared[ordinal] = &gpu{Device: &gpus[ordinal]}
			machine.gpus = append(machine.gpus, shared[ordinal])
		}
		machine.devices = append(machine.devices, newDevice(&machine.program.Devices[i], shared[ordinal]))
	}
	return nil
}

// start begins every device's thread, and loads kernels once a GPU.
func (machine *machine) start() error {
	for _, gpu := range machine.gpus {
		gpu.ring = transfer.New(machine.backend.shape(len(machine.gpus)))
	}
	for _, device := range machine.devices {
		if err := device.start(); err != nil {
			return machine.at(device, taken(err))
		}
	}
	return nil
}

// taken is an error of a GPU that another process has for itself as one that says so.
func taken(err error) error {
	var told *driver.Error
	if errors.As(err, &told) && told.Code == driver.Unavailable {
		return &TakenError{err}
	}
	return err
}

// at says of which device an error is.
func (*machine) at(device *device, err error) error {
	return fmt.Errorf("device %d on %s: %w", device.plan.ID, device.gpu.place(), err)
}

// reserve maps every arena, for its own GPU and those that send into it.
func (machine *machine) reserve() error {
	for i, device := range machine.devices {
		err := machine.allot("cuMemCreate")
		if err == nil {
			err = device.open(machine.senders(device), machine.backend.options.Transport)
		}
		for j := range machine.program.Buffers {
			if buffer := &machine.program.Buffers[j]; err == nil && int(buffer.Device) == i && buffer.Class == program.Workspace {
				device.workspace = blas.Workspace{Address: device.at(buffer.Offset), Bytes: buffer.Bytes}
			}
		}
		var told *driver.Error
		if errors.As(err, &told) && told.Code == driver.OutOfMemory {
			return errors.Join(machine.roomOn(device.gpu), machine.at(device, err))
		}
		if denied := (*driver.AccessError)(nil); errors.As(err, &denied) {
			err = fmt.Errorf("%w: --transport host goes another way", err)
		}
		if err != nil {
			return machine.at(device, err)
		}
	}
	return nil
}

// Close gives everything back. A GPU that is at something that does not end, or is
// lost, gives nothing back before the process ends.
func (machine *machine) Close() error {
	if machine.left || len(machine.unanswered()) > 0 {
		machine.left, machine.devices, machine.gpus = true, nil, nil
		return nil
	}
	var all []error
	for _, device := range machine.devices {
		if device.context != nil { // where Open failed GPUs may still be at what they were given
			all = append(all, device.do(func() error { return device.leave(machine.backend.options.Poisoned) }))
		}
	}
	if machine.trap != nil {
		all = append(all, machine.deviceOf(machine.trap.index).do(machine.trap.free))
	}
	for _, link := range machine.linked {
		all = append(all, link.free())
	}
	for i, device := range machine.devices {
		if device.context == nil {
			continue
		}
		all = append(all, device.do(func() error { return errors.Join(machine.unmark(i), device.close()) }))
	}
	for i := len(machine.devices) - 1; i >= 0; i-- { // a GPU's first device goes last, with what all share
		device := machine.devices[i]
		if device.context != nil {
			all = append(all, device.do(func() error {
				var err error
				if machine.on(device.gpu)[0] == device {
					err = errors.Join(device.gpu.ring.Close(), device.gpu.kernels.Unload())
				}
				return errors.Join(err, device.context.Release())
			}))
		}
		close(device.tasks)
	}
	machine.devices, machine.gpus, machine.events, machine.linked, machine.trap = nil, nil, nil, nil, nil
	machine.reads(givenBack)
	return errors.Join(all...)
}
