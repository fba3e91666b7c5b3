//go:build cuda && linux && cgo && amd64

package cuda

import (
	"fmt"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// trap is a kernel before an instruction that computes, in the step that a fault names. It
// shows how a valid program fails. For [executor.HangStep] it does not end, for
// [executor.LoseStep] it reads an address that is not mapped.
type trap struct {
	device *device
	flag   *driver.Pinned // the kernel waits until it is not zero; tests set it
}

// nowhere is an address that no GPU maps.
const nowhere driver.Address = 0

// injectFault makes the trap for the fault. A hang is on the first device that computes, so
// that others wait for it. A loss is on the last, to which the others may have sent already.
// The trap is nil without such a fault.
func injectFault(fleet *fleet, scheduler *schedule.Scheduler) (*trap, error) {
	fault, program := fleet.options.Fault, fleet.program
	if fault.Kind != executor.HangStep && fault.Kind != executor.LoseStep {
		return nil, nil //nolint:nilnil // there is no such fault
	}
	found := int32(-1)
	for i := range program.Instrs {
		later := found < 0 || fault.Kind == executor.LoseStep && program.Instrs[i].Device > program.Instrs[found].Device
		if later && schedule.Computes(program.Instrs[i].Op) {
			found = int32(i)
		}
	}
	if found < 0 {
		return nil, nil //nolint:nilnil // nothing computes
	}
	made, at := &trap{device: fleet.devices[program.Instrs[found].Device]}, nowhere
	scheduler.Fault = &schedule.Fault{Instr: found, Step: fault.At, Give: func(args *schedule.Args) error {
		return made.device.kernels.Hang(args.Queue.(*driver.Stream), at) //nolint:errcheck // there are no others
	}}
	if fault.Kind == executor.LoseStep {
		return made, nil
	}
	scheduler.Fault.Says = fmt.Sprintf("a kernel that does not end, as %s:%d asks", executor.HangStep, fault.At)
	err := made.device.do(func() (err error) {
		if made.flag, err = fleet.allots.pin(4); err == nil {
			clear(made.flag.Data)
			at = made.flag.Address()
		}
		return err
	})
	return made, err
}

// free releases the trap.
func (trap *trap) free() error {
	if trap == nil {
		return nil
	}
	return trap.device.do(trap.flag.Free)
}
