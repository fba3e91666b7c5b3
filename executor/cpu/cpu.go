// Package cpu runs programs on the processor, simply and slowly: it is the reference for the other
// backends. A device is a memory mapping and a goroutine that runs the instructions of its streams
// in order. Devices share data only through received slots: a kernel gets slices of its own
// device's arena.
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

// New returns the processor's backend.
func New() executor.Backend {
	return &backend{reserve: reserve, release: release, limits: hostmemory.Limits}
}

// backend provides the memory of arenas.
type backend struct {
	reserve func(size int64) ([]byte, error)
	release func(arena []byte) error
	limits  func() []hostmemory.FreeMemory
}

func (*backend) Name() string { return "cpu" }

// Open checks that there is enough memory before it maps any. The system grants mappings without
// memory for them, and kills the process that touches more pages than there are. The heap is
// released first, because the run does not use what planning left.
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

// poison touches every page, on all devices in parallel: page faults take most of the time.
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
