// Package backends is the one place at which the command names the backends that run
// programs: everything else knows them by the types of package executor.
package backends

import (
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cpu"
	"github.com/devmap-dev/devmap/executor/cuda"
)

// CPU returns the reference backend, on this machine's processor.
func CPU() executor.Backend { return cpu.New() }

// GPU returns the backend of GPUs; [executor.ErrNotBuilt] in a build without one.
func GPU(options executor.GPUOptions) (executor.Backend, error) { return cuda.New(options) }

// Built returns nil if this build has a backend of GPUs, and says otherwise what is
// missing.
func Built() error {
	_, err := cuda.New(executor.GPUOptions{})
	return err
}

// GPUs returns the GPUs that the driver shows to the process.
func GPUs() ([]executor.GPU, error) { return cuda.GPUs() }

// Found says what programs are run with here, a line each: driver, libraries, GPUs.
func Found() []string { return cuda.Found() }

// Paths measures copies inside GPUs, by their numbers, between them and with the host.
func Paths(gpus []int) ([]executor.PathRates, error) { return cuda.Paths(gpus) }

// Observer begins to look at GPUs. This process must not use them yet.
func Observer(gpus []int) (executor.GPUMonitor, error) { return cuda.NewMonitor(gpus) }
