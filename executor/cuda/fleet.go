//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/transfer"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
	"github.com/devmap-dev/devmap/executor/program"
)

// fleet is the devices of a program on their GPUs.
type fleet struct {
	options *executor.GPUOptions
	program *program.Program
	gpus    []*gpu
	devices []*device
	allots  allotment
	// left: a kernel or a copy does not end, or a GPU is lost. The fleet makes no more
	// calls for its GPUs, and frees nothing before the process ends.
	left bool
}

func newFleet(options *executor.GPUOptions, of *program.Program) *fleet {
	return &fleet{options: options, program: of, allots: allotment{fault: options.Fault}}
}

// find gives every device of the program its GPU.
func (fleet *fleet) find() error {
	_, _ = unused() // read before the driver is open; callers that need it read it again
	if err := driver.Open(); err != nil {
		return err
	}
	gpus, err := driver.Devices()
	if err != nil {
		return err
	}
	asked := fleet.options.Devices
	if len(asked) != 0 && len(asked) != len(fleet.program.Devices) {
		return fmt.Errorf("%d GPUs are named for a program of %d devices: name one for each", len(asked), len(fleet.program.Devices))
	}
	shared := make(map[int]*gpu)
	for i := range fleet.program.Devices {
		plan, ordinal := &fleet.program.Devices[i], i
		if len(asked) != 0 {
			ordinal = asked[i]
		}
		if ordinal < 0 || ordinal >= len(gpus) {
			return fmt.Errorf("device %d is to be on GPU %d, and the driver shows %d", plan.ID, ordinal, len(gpus))
		}
		if shared[ordinal] == nil {
			shared[ordinal] = &gpu{Device: &gpus[ordinal]}
			fleet.gpus = append(fleet.gpus, shared[ordinal])
		}
		fleet.devices = append(fleet.devices, newDevice(plan, shared[ordinal], &fleet.allots))
	}
	return nil
}

// start binds every device's thread to its GPU's context, makes a ring for each GPU, and loads
// kernels once a GPU.
func (fleet *fleet) start(shape func(gpus int) transfer.Shape) error {
	for _, gpu := range fleet.gpus {
		gpu.ring = transfer.New(shape(len(fleet.gpus)))
	}
	for _, device := range fleet.devices {
		if err := device.do(device.prepare); err != nil {
			return at(device, taken(err))
		}
	}
	return nil
}

// taken returns a TakenError if another process uses the GPU exclusively, and other errors
// unchanged.
func taken(err error) error {
	var answer *driver.Error
	if errors.As(err, &answer) && answer.Code == driver.Unavailable {
		return &executor.TakenError{Err: err}
	}
	return err
}

// at adds the device to an error.
func at(device *device, err error) error { return fmt.Errorf("%v: %w", device.lanes, err) }

// index returns a device's number.
func (fleet *fleet) index(device *device) int { return slices.Index(fleet.devices, device) }

// lanes returns the devices in the scheduler's form.
func (fleet *fleet) lanes() (all []*schedule.Device) {
	for _, device := range fleet.devices {
		all = append(all, device.lanes)
	}
	return all
}

// of returns the device of a scheduler's device.
func of(lanes *schedule.Device) *device { return lanes.Driver.(calls).device } //nolint:errcheck // there are no others

// on returns the devices of a GPU.
func (fleet *fleet) on(gpu *gpu) (all []*device) {
	for _, device := range fleet.devices {
		if device.gpu == gpu {
			all = append(all, device)
		}
	}
	return all
}

// everywhere calls a function on the own thread of every device that has an arena, all at once.
func (fleet *fleet) everywhere(call func(device *device) error) error {
	var threads sync.WaitGroup
	all := make([]error, len(fleet.devices))
	for i, device := range fleet.devices {
		if device.arena == nil {
			continue
		}
		threads.Go(func() {
			if err := device.do(func() error { return call(device) }); err != nil {
				all[i] = at(device, err)
			}
		})
	}
	threads.Wait()
	for _, err := range all {
		if err != nil {
			return err // the others' are probably the same
		}
	}
	return nil
}

// settled waits until every device has what the host wrote. The message of another device may come
// before its own streams begin.
func (fleet *fleet) settled() error {
	for _, device := range fleet.devices {
		if err := device.do(device.host.Synchronize); err != nil {
			return err
		}
	}
	return nil
}

// finish waits, on a device's thread, until the work that its streams got outside of a step has
// ended.
func (fleet *fleet) finish(device *device, what string) error {
	err := device.lanes.Finish(fleet.options.StallLimit, what)
	return fleet.noted(err)
}

// noted marks the fleet as left if the error is a hang or a lost GPU.
func (fleet *fleet) noted(err error) error {
	hang, lost := (*executor.HangError)(nil), (*executor.LostError)(nil)
	fleet.left = fleet.left || errors.As(err, &hang) || errors.As(err, &lost)
	return err
}

// unanswered returns the GPUs whose contexts are lost.
func (fleet *fleet) unanswered() (lost []schedule.Place) {
	for _, gpu := range fleet.gpus {
		devices := fleet.on(gpu)
		if answer := (*executor.LostError)(nil); devices[0].context == nil || !errors.As(devices[0].do(answers), &answer) {
			continue
		}
		place := schedule.Place{Name: gpu.place()}
		for _, device := range devices {
			place.Devices = append(place.Devices, device.lanes)
		}
		lost = append(lost, place)
	}
	return lost
}

// answers makes a call that needs the bound context and does not wait.
func answers() error {
	event, err := driver.NewEvent(false)
	if err != nil {
		return err
	}
	return event.Destroy()
}

// release frees what the devices of a GPU share, after everything that each has alone, and ends the
// threads.
func (fleet *fleet) release() error {
	var all []error
	for _, device := range slices.Backward(fleet.devices) { // a GPU's first device goes last, with what all share
		if device.context != nil {
			all = append(all, device.do(func() error {
				var err error
				if fleet.on(device.gpu)[0] == device {
					err = errors.Join(device.gpu.ring.Close(), device.gpu.kernels.Unload())
				}
				return errors.Join(err, device.context.Release())
			}))
		}
		device.lanes.End()
	}
	fleet.devices, fleet.gpus = nil, nil
	return errors.Join(all...)
}
