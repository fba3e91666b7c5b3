//go:build cuda && linux && cgo && amd64

package cuda

import (
	"errors"
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/monitor"
	"github.com/devmap-dev/devmap/executor/nvml"
)

// Found lists what programs run with here, a line each: the driver, NVML, cuBLASLt and every GPU.
// The line of a missing part says why.
func Found() []string {
	lines := []string{foundDriver(), foundNVML(), foundBLAS()}
	gpus, err := driver.Devices()
	if err != nil { // there is no driver
		return lines
	}
	for i := range gpus {
		gpu := &gpus[i]
		lines = append(lines, fmt.Sprintf("GPU %d: %s, %v, compute capability %d.%d, %d processors, %s",
			i, gpu.Name, costmodel.Bytes(gpu.Total), gpu.Capability/10, gpu.Capability%10, gpu.Processors, gpu.UUID))
	}
	return lines
}

func foundDriver() string {
	err := driver.Open()
	if err != nil {
		return oneLine(err)
	}
	version, err := driver.Version()
	if err != nil {
		return oneLine(err)
	}
	return fmt.Sprintf("CUDA %d.%d by the driver %s", version/1000, version%1000/10, driver.Library())
}

func foundNVML() string {
	library, err := nvml.Open()
	if err != nil {
		return oneLine(err)
	}
	defer library.Close() //nolint:errcheck // nothing was written
	version, err := library.Driver()
	if err != nil {
		return oneLine(err)
	}
	return "NVML of driver " + version
}

func foundBLAS() string {
	if err := blas.Open(); err != nil {
		return oneLine(err)
	}
	return "cuBLASLt " + blas.Library()
}

// oneLine is an error on one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// GPUs returns the GPUs that the driver shows to the process, by the numbers that
// [executor.GPUOptions].Devices takes. An error says what is missing: the driver's library, an
// entry point that it is too old for, or a GPU.
func GPUs() ([]executor.GPU, error) {
	_, _ = unused() // read before the driver is open; callers that need it read it again
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
	all := make([]executor.GPU, len(found))
	for i := range found {
		all[i] = executor.GPU{Name: found[i].Name, UUID: found[i].UUID, Capability: fmt.Sprintf("%d.%d", found[i].Capability/10, found[i].Capability%10)}
	}
	return all, nil
}

// NewMonitor begins to monitor GPUs, given by the driver's numbers. This process must not have used
// any of them before.
func NewMonitor(ordinals []int) (executor.GPUMonitor, error) {
	before, unread := unused()
	if err := driver.Open(); err != nil {
		return nil, err
	}
	gpus, err := driver.Devices()
	if err != nil {
		return nil, err
	}
	made, err := monitor.New(gpus, ordinals, func(uuid string) (nvml.GPU, []nvml.Process, string) {
		switch found, known := before[uuid]; {
		case unread != nil:
			return nvml.GPU{}, nil, unread.Error()
		case !known:
			return nvml.GPU{}, nil, "NVML knows no " + uuid
		default:
			return found.handle, found.processes, ""
		}
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}
