//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"
	"slices"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
	"github.com/devmap-dev/devmap/executor/program"
)

// machine is the devices of a program on their GPUs, as an [executor.Machine].
type machine struct {
	*fleet
	*arenas
	*meters
	*trials
	*sleeper
	loader

	works     works
	scheduler *schedule.Scheduler
	trap      *trap // nil: no step is to hang or to lose a GPU
}

// Growth is not known: the arenas are not in the process's memory.
func (*machine) Growth() int64 { return -1 }

// assembled returns a machine whose devices are not open yet.
func (backend *backend) assembled(bound *bind.Bound) *machine {
	fleet := newFleet(&backend.options, bound.Program)
	arenas := &arenas{fleet: fleet}
	meters := &meters{fleet: fleet}
	made := &machine{
		fleet: fleet, arenas: arenas, meters: meters, trials: &trials{arenas: arenas},
		sleeper: &sleeper{arenas: arenas, meters: meters, bound: bound}, loader: loader{arenas},
	}
	made.scheduler = schedule.New(bound.Program, schedule.Options{
		Work: made.works.work, Past: bound.Past, Chain: made.works.graphs.chain, StallLimit: backend.options.StallLimit, Lost: fleet.unanswered,
	})
	made.works = works{
		kernels: backend.kernels, bound: bound, instr: backend.instr, scheduler: made.scheduler, times: backend.options.Clock != nil,
		trains: slices.ContainsFunc(bound.Program.Instrs, func(instr program.Instr) bool { return instr.Op.Back() }),
	}
	return made
}

// open retains the GPUs' contexts, loads kernels, and checks the free memory. It maps arenas
// only if all of them fit. Then it makes everything that steps use, sends bytes over every
// path, and runs every kernel once.
func (machine *machine) open(ctx context.Context, backend *backend) error {
	scheduler := machine.scheduler
	for _, part := range []func() error{
		machine.find,
		func() error { return machine.start(backend.shape) },
		machine.measure, machine.checkMemory, machine.pinRings,
		func() error {
			scheduler.Devices = machine.lanes()
			return scheduler.Connect(func(link *schedule.Link) (bool, error) { return staged(machine.options.Transport, link) })
		},
		func() error {
			return machine.reserve(func(into *device) []*driver.Device { return senders(scheduler.Links, into) })
		},
		func() error { return stage(scheduler.Links) },
		scheduler.Mark,
		func() error { return machine.tryPaths(scheduler.Links) },
		machine.works.keep,
		func() error { return machine.works.warm(machine.fleet) },
		machine.works.capture,
		machine.prime,
		func() (err error) { machine.trap, err = injectFault(machine.fleet, scheduler); return err },
		func() error { machine.reads(allReady); return nil },
		ctx.Err,
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// Step implements [executor.Machine].
func (machine *machine) Step(ctx context.Context, step *executor.Step) (*executor.Times, error) {
	if len(machine.devices) == 0 || machine.left {
		return nil, errors.New("the machine is closed")
	}
	if machine.asleep {
		return nil, errAsleep
	}
	for _, device := range machine.devices { // a message may come before the receiver's own streams begin
		err := device.do(func() error {
			device.clock.begin(machine.options.Clock, step.Number)
			return device.host.Synchronize()
		})
		if err != nil {
			return nil, err
		}
	}
	times, err := machine.scheduler.Step(ctx, step)
	if err != nil {
		if lost, answer := (*executor.LostError)(nil), (*driver.Error)(nil); errors.As(err, &lost) && errors.As(lost.Err, &answer) {
			lost.Err = answer // without the instruction: its call only came next
		}
		return nil, machine.noted(err)
	}
	for _, device := range machine.devices {
		if err := device.do(func() error { return device.clock.tell(device.plan.ID) }); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// Close releases everything. A GPU whose work does not end, or that is lost, releases
// nothing before the process ends.
func (machine *machine) Close() error {
	if machine.left || len(machine.unanswered()) > 0 {
		machine.left = true
		return nil
	}
	var all []error
	for _, device := range machine.devices {
		if device.context != nil { // after a failed Open, GPUs may still be working
			all = append(all, device.do(func() error { return leave(device, machine.options.Poisoned) }))
		}
	}
	all = append(all, machine.trap.free())
	for _, link := range machine.scheduler.Links {
		all = append(all, link.Free())
	}
	for _, device := range machine.devices {
		if device.context != nil {
			all = append(all, device.do(func() error {
				return errors.Join(machine.works.graphs.free(device), machine.scheduler.Unmark(device.lanes), device.close())
			}))
		}
	}
	all = append(all, machine.release())
	machine.scheduler.Links, machine.trap = nil, nil
	machine.reads(givenBack)
	return errors.Join(all...)
}
