//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// GPUs are those that the driver shows to the process, by the numbers that
// [Options].Devices takes. Where there is none the error says what is missing: the
// driver's library, the entry point that it is too old for, or a GPU.
func GPUs() ([]GPU, error) {
	_, _ = unused() // what GPUs hold before the driver is there: asked for again by who needs it
	if err := driver.Open(); err != nil {
		return nil, err
	}
	found, err := driver.Devices()
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("the driver shows no GPU: CUDA_VISIBLE_DEVICES, or what a container is given, hides them")
	}
	all := make([]GPU, len(found))
	for i := range found {
		all[i] = GPU{found[i].Name, found[i].UUID, fmt.Sprintf("%d.%d", found[i].Capability/10, found[i].Capability%10)}
	}
	return all, nil
}
