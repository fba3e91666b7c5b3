package cpu

import (
	"context"
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
	"github.com/devmap-dev/devmap/executor/program"
)

// machine is the arenas of a program.
type machine struct {
	backend   *backend
	program   *program.Program
	instr     func(index int32) (bind.Instr, error)
	recipe    *recipe.Model
	scheduler *schedule.Scheduler
	arenas    [][]byte // by device; nil if the device is idle
	memory    memory
}

// Step implements [executor.Machine].
func (machine *machine) Step(ctx context.Context, step *executor.Step) (*executor.Times, error) {
	if len(machine.arenas) != len(machine.program.Devices) {
		return nil, errors.New("the machine is closed")
	}
	return machine.scheduler.Step(ctx, step)
}

func (machine *machine) Fill(device int, offset, size int64, value byte) error {
	stretch, err := machine.stretch(device, offset, size)
	if err == nil {
		fill(stretch, value)
	}
	return err
}

func (machine *machine) Write(device int, offset int64, data []byte) error {
	stretch, err := machine.stretch(device, offset, int64(len(data)))
	copy(stretch, data)
	return err
}

func (machine *machine) Read(device int, offset int64, data []byte) error {
	stretch, err := machine.stretch(device, offset, int64(len(data)))
	copy(data, stretch)
	return err
}

func (machine *machine) Growth() int64 { return machine.memory.growth() }

// Close releases every arena, also if releasing one fails. It returns all errors.
func (machine *machine) Close() error {
	var all []error
	for _, arena := range machine.arenas {
		if arena != nil {
			all = append(all, machine.backend.release(arena))
		}
	}
	for _, device := range machine.scheduler.Devices {
		device.End()
	}
	machine.arenas, machine.scheduler.Devices = nil, nil
	return errors.Join(all...)
}

// stretch returns bytes [offset, offset+size) of an arena, without capacity for more.
func (machine *machine) stretch(device int, offset, size int64) ([]byte, error) {
	if device < 0 || device >= len(machine.arenas) {
		return nil, fmt.Errorf("device %d: no arena is open; %d are", device, len(machine.arenas))
	}
	arena := machine.arenas[device]
	if offset < 0 || size < 0 || offset > int64(len(arena))-size {
		return nil, fmt.Errorf("device %d: %d bytes at %d are not in its arena of %v", device, size, offset, costmodel.Bytes(len(arena)))
	}
	return arena[offset : offset+size : offset+size], nil
}

// fill sets every byte by copying bytes that are already set. It copies at most 64 KiB at a time,
// which stay in the cache, and so is as fast as memory.
func fill(stretch []byte, value byte) {
	if value == 0 {
		clear(stretch)
		return
	}
	if len(stretch) > 0 {
		stretch[0] = value
	}
	for done := 1; done < len(stretch); {
		done += copy(stretch[done:], stretch[:min(done, 1<<16)])
	}
}
