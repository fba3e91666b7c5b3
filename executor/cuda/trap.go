//go:build cuda && linux && cgo && amd64

package cuda

import (
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// trap is a kernel before an instruction that computes, in the step that a fault
// names, so that what follows is seen on a program that is sound. Of [HangStep] it
// does not end, of [LoseStep] it reads an address at which there is nothing. Nil
// where none is asked for.
type trap struct {
	kind  FaultKind
	index int32 // of Instrs
	step  int64
	flag  *driver.Pinned // the kernel waits until it is not zero: tests let it go
}

// nowhere is an address that a GPU maps for nobody.
const nowhere driver.Address = 0

// dig makes the trap that is asked for: one that hangs on the first device that
// computes, so that others wait for it; one that is lost on the last, which the others
// may have sent to already.
func (machine *machine) dig() error {
	fault := machine.backend.options.Fault
	if fault.Kind != HangStep && fault.Kind != LoseStep {
		return nil
	}
	found := &trap{kind: fault.Kind, index: -1, step: fault.At}
	for i := range machine.program.Instrs {
		instr := &machine.program.Instrs[i]
		later := found.index < 0 || fault.Kind == LoseStep && instr.Device > machine.program.Instrs[found.index].Device
		if later && machine.computes(int32(i)) {
			found.index = int32(i)
		}
	}
	if found.index < 0 {
		return nil
	}
	machine.trap = found
	if fault.Kind == LoseStep {
		return nil
	}
	return machine.deviceOf(found.index).do(func() (err error) {
		if found.flag, err = machine.pin(4); err == nil {
			clear(found.flag.Data)
		}
		return err
	})
}

// at reports an instruction before which the trap is.
func (trap *trap) at(step *executor.Step, index int32) bool {
	return trap != nil && trap.index == index && trap.step == step.Number
}

// flags is the address that the kernel looks at.
func (trap *trap) flags() driver.Address {
	if trap.flag == nil {
		return nowhere
	}
	return trap.flag.Address()
}

// free gives the trap back.
func (trap *trap) free() error {
	if trap == nil {
		return nil
	}
	return trap.flag.Free()
}
