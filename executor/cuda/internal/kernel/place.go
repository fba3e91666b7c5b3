//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// place returns where the thread's kernels read how many tokens were generated. It is a word of a
// module, so that a captured graph serves all tokens and the arena has no byte of it.
func (kernels *Kernels) place() (driver.Address, error) {
	images, err := ours()
	if err != nil {
		return 0, err
	}
	module, err := kernels.modules.get("runtime", func() (string, error) { return images.texts["runtime"], nil })
	if err != nil {
		return 0, err
	}
	at, bytes, err := module.Global("places")
	if err == nil && int64(kernels.thread)*4 >= bytes {
		err = fmt.Errorf("the GPU has %d devices of the program: there is room for the places of %d", kernels.thread, bytes/4)
	}
	return at + driver.Address(4*kernels.thread), err
}

// SetPlace queues a write of how many tokens were generated.
func (kernels *Kernels) SetPlace(queue schedule.Queue, past int64) error {
	at, err := kernels.place()
	if err != nil {
		return err
	}
	return queue.(*driver.Stream).FillWord(at, uint32(past)) //nolint:forcetypeassert // there are no others
}
