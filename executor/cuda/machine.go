//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
)

// machine is the devices of a program on their GPUs.
type machine struct {
	backend *backend
	program *program.Program
	bound   *bind.Bound
	order   order
	gpus    []*gpu
	devices []*device
	gauges  []*memoryGauge // of the GPUs; they stay behind Close
	events  []marks        // by instruction
	kept    []*prepared    // by instruction, nil where it computes nothing, or is not kept
	ring    *transfer.Ring
	links   map[linkKey]*link
	linked  []*link // in the order of the first sends
	told    []executor.Link
	trap    *trap // nil: no step is to hang
	// allotted is how many arenas and other stretches of memory were asked for.
	allotted int64
	hung     bool // GPUs are at something that does not end
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
	case machine.hung:
		return nil, errors.New("the GPUs are at something that does not end")
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

// Close gives everything back. A GPU that is at something that does not end gives
// nothing back before the process ends.
func (machine *machine) Close() error {
	if machine.hung {
		machine.devices, machine.gpus = nil, nil
		return nil
	}
	var all []error
	if machine.trap != nil {
		all = append(all, machine.deviceOf(machine.trap.index).do(machine.trap.free))
	}
	for _, link := range machine.linked {
		if link.relay != nil {
			all = append(all, link.relay.free())
		}
	}
	for i, device := range machine.devices {
		if device.context == nil {
			continue
		}
		all = append(all, device.do(func() error { return errors.Join(machine.unmark(i), device.close()) }))
	}
	if len(machine.devices) > 0 && machine.devices[0].context != nil {
		all = append(all, machine.devices[0].do(machine.ring.Close))
	}
	for i := len(machine.devices) - 1; i >= 0; i-- { // a GPU's first device goes last, with what all share
		device := machine.devices[i]
		if device.context != nil {
			all = append(all, device.do(func() error {
				var err error
				if machine.on(device.gpu)[0] == device {
					err = device.gpu.kernels.Unload()
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

func (machine *machine) unmark(device int) error {
	var all []error
	plan := machine.devices[device].plan
	for index := plan.First; index < plan.End && int(index) < len(machine.events); index++ {
		made := &machine.events[index]
		for _, event := range []*driver.Event{made.began, made.came, made.ended} {
			if event != nil {
				all = append(all, event.Destroy())
			}
		}
	}
	return errors.Join(all...)
}
