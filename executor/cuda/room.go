//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// Room says of arenas whether GPUs have room for them, beside what this process and
// others hold now. It takes part in each GPU's context for as long as that takes.
func (backend *backend) Room(ctx context.Context, bound *bind.Bound) error {
	machine := &machine{backend: backend, program: bound.Program}
	if err := machine.find(); err != nil {
		return err
	}
	for _, gpu := range machine.gpus {
		primary, err := gpu.Retain()
		if err != nil {
			return machine.at(machine.on(gpu)[0], taken(err))
		}
		err = primary.Within(func() (err error) {
			var free int64
			if gpu.granule, err = gpu.Granule(); err == nil {
				free, _, err = driver.Room()
			}
			return errors.Join(err, machine.lacks(gpu, free))
		})
		if err := errors.Join(err, primary.Release(), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// room looks for room on every GPU, whatever takes the rest of it.
func (machine *machine) room() error {
	for _, gpu := range machine.gpus {
		if err := machine.roomOn(gpu); err != nil {
			return err
		}
	}
	return nil
}

func (machine *machine) roomOn(gpu *gpu) error {
	var free int64
	err := machine.on(gpu)[0].do(func() (err error) {
		free, _, err = driver.Room()
		return err
	})
	if err != nil {
		return err
	}
	for _, device := range machine.on(gpu) { // what was mapped already was room
		if device.arena != nil && device.arena.Mapped() {
			free += device.arena.Bytes
		}
	}
	return machine.lacks(gpu, free)
}

// lacks says that the arenas on a GPU find no room.
func (machine *machine) lacks(gpu *gpu, free int64) error {
	var need int64
	for _, device := range machine.on(gpu) {
		need = min(need+gpu.whole(device.plan.Arena), 1<<62)
	}
	left := free
	for _, device := range machine.on(gpu) {
		if left -= gpu.whole(device.plan.Arena); left < 0 {
			return &executor.RoomError{Device: device.plan.ID, Need: need, Free: free, Place: gpu.place()}
		}
	}
	return nil
}
