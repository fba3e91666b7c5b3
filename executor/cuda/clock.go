//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
)

// clock times the kernels of a device's step. Each kernel has an event before and one
// after it, so that the time between kernels does not count.
type clock struct {
	events   []*driver.Event // made as they are needed, and used again in every step
	timed    []*recipe.Kernel
	onKernel func(timed executor.KernelTime) // nil: the step is not timed
}

// begin prepares the clock for a step.
func (clock *clock) begin(of func(step int64) func(timed executor.KernelTime), step int64) {
	clock.timed, clock.onKernel = clock.timed[:0], nil
	if of != nil {
		clock.onKernel = of(step)
	}
}

// clocked returns a launch that is timed in steps.
func (clock *clock) clocked(code *recipe.Kernel, launch kernel.Launch) kernel.Launch {
	return func(step *kernel.Step) error {
		if clock.onKernel == nil {
			return launch(step)
		}
		at := 2 * len(clock.timed)
		for len(clock.events) < at+2 {
			event, err := driver.NewEvent(true)
			if err != nil {
				return err
			}
			clock.events = append(clock.events, event)
		}
		clock.timed = append(clock.timed, code)
		if err := step.Queue.Record(clock.events[at]); err != nil {
			return err
		}
		if err := launch(step); err != nil {
			return err
		}
		return step.Queue.Record(clock.events[at+1])
	}
}

// tell reports the time of each kernel of the step, and ends its timing.
func (clock *clock) tell(number int32) error {
	for i, code := range clock.timed {
		took, err := clock.events[2*i+1].Since(clock.events[2*i])
		if err != nil {
			return err
		}
		clock.onKernel(executor.KernelTime{Device: number, Kernel: code, Took: took})
	}
	clock.timed, clock.onKernel = clock.timed[:0], nil
	return nil
}

func (clock *clock) close() error {
	var all []error
	for _, event := range clock.events {
		all = append(all, event.Destroy())
	}
	clock.events = nil
	return errors.Join(all...)
}
