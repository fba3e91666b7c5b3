//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// place returns where the thread's kernels read how many tokens were generated, and keeps the
// address for later tokens. The word is in a module, not in the arena. So a captured graph serves
// all tokens.
func (kernels *Kernels) place() (driver.Address, error) {
	if kernels.placed != 0 {
		return kernels.placed, nil
	}
	at, bytes, err := kernels.global("runtime", "places")
	if err == nil && int64(kernels.thread)*4 >= bytes {
		err = fmt.Errorf("the program has %d devices on this GPU: module runtime has room for the token positions of %d", kernels.thread, bytes/4-1)
	}
	if err != nil {
		return 0, err
	}
	kernels.placed = at + driver.Address(4*kernels.thread)
	return kernels.placed, nil
}

// Advanced says that a launch was queued that writes the next position.
func (kernels *Kernels) Advanced(next int64) { kernels.advanced = next }

// SetPlace queues a write of how many tokens were generated, unless the launch before has written
// it.
func (kernels *Kernels) SetPlace(queue schedule.Queue, past int64) error {
	at, err := kernels.place()
	if err != nil || kernels.advanced == past && past > 0 {
		return err
	}
	kernels.advanced = 0
	return queue.(*driver.Stream).FillWord(at, uint32(past)) //nolint:errcheck // there are no others
}
