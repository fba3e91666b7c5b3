// Package cpu runs programs on the processor, plainly and slowly: it judges the
// other backends. A device is a mapping of its own and a goroutine, which carries the
// instructions of its streams out as they are given. What one device makes another
// one sees in a slot that it received, and nowhere else: kernels get slices of
// their own device's arena.
package cpu

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/hostmemory"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// New is the processor's backend.
func New() executor.Backend {
	return &backend{reserve: reserve, release: release, limits: hostmemory.Limits}
}

// backend is where arenas come from.
type backend struct {
	reserve func(size int64) ([]byte, error)
	release func(arena []byte) error
	limits  func() []hostmemory.FreeMemory
}

func (*backend) Name() string { return "cpu" }

// Open looks for room before it asks for any: a mapping is given whether there
// is memory for it or not, and who touches the last page of the machine is
// killed. The heap is handed back first, what planning left is not the run's.
func (backend *backend) Open(ctx context.Context, bound *bind.Bound) (executor.Machine, error) {
	debug.FreeOSMemory()
	if err := lack(bound.Program.Devices, backend.limits()); err != nil {
		return nil, err
	}
	machine := &machine{
		backend: backend, program: bound.Program, instr: bound.Instr, recipe: bound.Recipe,
		memory: measure(),
	}
	machine.scheduler = schedule.New(bound.Program, schedule.Options{Work: machine.work, Past: bound.Past, Immediate: true})
	err := machine.reserve()
	if err == nil {
		err = machine.poison(ctx)
	}
	if err == nil {
		err = machine.start()
	}
	if err != nil {
		machine.Close() //nolint:errcheck // the first error is why nothing runs
		return nil, err
	}
	return machine, nil
}

// reserve maps every arena.
func (machine *machine) reserve() error {
	var reserved int64
	for i := range machine.program.Devices {
		device := &machine.program.Devices[i]
		if device.Arena == 0 {
			machine.arenas = append(machine.arenas, nil)
			continue
		}
		arena, err := machine.backend.reserve(device.Arena)
		if errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		if err != nil {
			return &executor.MemoryError{Device: device.ID, Need: needed(machine.program.Devices), Free: reserved, Place: "this process (" + err.Error() + ")"}
		}
		machine.arenas = append(machine.arenas, arena)
		reserved += device.Arena
	}
	return nil
}

// poison touches every page, all devices' at once: it is page faults more than
// bytes that this takes its time with.
func (machine *machine) poison(ctx context.Context) error {
	var devices sync.WaitGroup
	for _, arena := range machine.arenas {
		devices.Go(func() {
			const part = 64 << 20
			for at := 0; at < len(arena) && ctx.Err() == nil; at += part {
				fill(arena[at:min(at+part, len(arena))], executor.Poison)
			}
		})
	}
	devices.Wait()
	return ctx.Err()
}

// start makes what steps use.
func (machine *machine) start() error {
	scheduler := machine.scheduler
	for i, arena := range machine.arenas {
		device := schedule.NewDevice(&machine.program.Devices[i], &device{machine: machine, number: i, arena: arena})
		scheduler.Devices = append(scheduler.Devices, device)
		if err := device.Open(); err != nil {
			return err
		}
	}
	return errors.Join(scheduler.Connect(func(*schedule.Link) (bool, error) { return false, nil }), scheduler.Mark())
}
