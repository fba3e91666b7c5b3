//go:build cuda && linux && cgo && amd64

package cuda

import (
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// trap is a kernel that does not end, before the first instruction that computes,
// in the step that [HangStep] names: what a step does that waits for ever is seen
// on a program that is sound. Nil where none is asked for.
type trap struct {
	index int32 // of Instrs
	step  int64
	flag  *driver.Pinned // the kernel waits until it is not zero: tests let it go
}

// at reports an instruction before which the trap is.
func (trap *trap) at(step *executor.Step, index int32) bool {
	return trap != nil && trap.index == index && trap.step == step.Number
}

// free gives the trap back.
func (trap *trap) free() error {
	if trap == nil {
		return nil
	}
	return trap.flag.Free()
}
