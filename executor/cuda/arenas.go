//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/program"
)

var errAsleep = errors.New("the machine sleeps: its arenas have no memory")

// arenas are the memory of a fleet's devices.
type arenas struct {
	*fleet
	asleep bool // arenas have addresses but no memory
}

// Fill implements [executor.Machine], as Write and Read do.
func (arenas *arenas) Fill(number int, offset, size int64, value byte) error {
	return arenas.with(number, offset, size, func(device *device) error { return device.fill(offset, size, value) })
}

func (arenas *arenas) Write(number int, offset int64, data []byte) error {
	return arenas.with(number, offset, int64(len(data)), func(device *device) error { return device.end.Write(offset, data) })
}

func (arenas *arenas) Read(number int, offset int64, data []byte) error {
	return arenas.with(number, offset, int64(len(data)), func(device *device) error { return device.end.Read(offset, data) })
}

// with calls a function on a device's thread, for bytes of its arena.
func (arenas *arenas) with(number int, offset, size int64, call func(device *device) error) error {
	device, err := arenas.place(number, offset, size)
	if err != nil || size == 0 {
		return err
	}
	return device.do(func() error { return call(device) })
}

// place returns the device whose arena has the bytes.
func (arenas *arenas) place(number int, offset, size int64) (*device, error) {
	switch {
	case arenas.left:
		return nil, errors.New("GPUs are at something that does not end, or lost")
	case arenas.asleep:
		return nil, errAsleep
	case number < 0 || number >= len(arenas.devices):
		return nil, fmt.Errorf("device %d: no arena is open; %d are", number, len(arenas.devices))
	}
	device := arenas.devices[number]
	if arena := device.plan.Arena; offset < 0 || size < 0 || offset > arena-size {
		return nil, fmt.Errorf("device %d: %d bytes at %d are not in its arena of %v", number, size, offset, costmodel.Bytes(arena))
	}
	return device, nil
}

// reserve maps every arena, for its own GPU and those that send into it.
func (arenas *arenas) reserve(senders func(device *device) []*driver.Device) error {
	for i, device := range arenas.devices {
		err := arenas.allots.allot("cuMemCreate")
		if err == nil {
			err = device.open(senders(device), arenas.options.Transport)
		}
		for j := range arenas.program.Buffers {
			if buffer := &arenas.program.Buffers[j]; err == nil && int(buffer.Device) == i && buffer.Class == program.Workspace {
				device.workspace = blas.Workspace{Address: device.at(buffer.Offset), Bytes: buffer.Bytes}
			}
		}
		var answer *driver.Error
		if errors.As(err, &answer) && answer.Code == driver.OutOfMemory {
			return errors.Join(arenas.checkMemoryOn(device.gpu), at(device, err))
		}
		if denied := (*driver.AccessError)(nil); errors.As(err, &denied) {
			err = fmt.Errorf("%w: --transport host goes another way", err)
		}
		if err != nil {
			return at(device, err)
		}
	}
	return nil
}

// checkMemory returns an error if the arenas of a GPU do not fit into its free memory.
func (arenas *arenas) checkMemory() error {
	for _, gpu := range arenas.gpus {
		if err := arenas.checkMemoryOn(gpu); err != nil {
			return err
		}
	}
	return nil
}

func (arenas *arenas) checkMemoryOn(gpu *gpu) error {
	var free int64
	err := arenas.on(gpu)[0].do(func() (err error) {
		free, _, err = driver.FreeMemory()
		return err
	})
	if err != nil {
		return err
	}
	for _, device := range arenas.on(gpu) { // memory that is mapped already counts as free
		if device.arena != nil && device.arena.Mapped() {
			free += device.arena.Bytes
		}
	}
	return lacks(gpu, arenas.on(gpu), free)
}

// lacks returns an error if a GPU has too little free memory for its arenas.
func lacks(gpu *gpu, devices []*device, free int64) error {
	var need int64
	for _, device := range devices {
		need = min(need+gpu.whole(device.plan.Arena), 1<<62)
	}
	left := free
	for _, device := range devices {
		if left -= gpu.whole(device.plan.Arena); left < 0 {
			return &executor.MemoryError{Device: device.plan.ID, Need: need, Free: free, Place: gpu.place()}
		}
	}
	return nil
}

// checkFreeMemory returns an error if a fleet's arenas do not fit into the GPUs' free
// memory. It retains each GPU's context meanwhile.
func checkFreeMemory(ctx context.Context, fleet *fleet) error {
	defer func() {
		for _, device := range fleet.devices {
			device.lanes.End()
		}
	}()
	if err := fleet.find(); err != nil {
		return err
	}
	for _, gpu := range fleet.gpus {
		devices := fleet.on(gpu)
		primary, err := gpu.Retain()
		if err != nil {
			return at(devices[0], taken(err))
		}
		err = primary.Within(func() (err error) {
			var free int64
			if gpu.granule, err = gpu.Granule(); err == nil {
				free, _, err = driver.FreeMemory()
			}
			return errors.Join(err, lacks(gpu, devices, free))
		})
		if err := errors.Join(err, primary.Release(), ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}
