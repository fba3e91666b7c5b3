// Package backends is the only place where the command names the backends that run programs. All
// other code uses the types of package executor.
package backends

import (
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cpu"
	"github.com/devmap-dev/devmap/executor/cuda"
)

// CPU returns the reference backend, on this machine's processor.
func CPU() executor.Backend { return cpu.New() }

// GPU returns the backend of GPUs. In a build without one, the error is [executor.ErrNotBuilt].
func GPU(options executor.GPUOptions) (executor.Backend, error) { return cuda.New(options) }

// Built returns nil if this build has a backend of GPUs; otherwise the error says what is missing.
func Built() error {
	_, err := cuda.New(executor.GPUOptions{})
	return err
}

// GPUs returns the GPUs that the driver shows to the process.
func GPUs() ([]executor.GPU, error) { return cuda.GPUs() }

// Found lists the driver, libraries and GPUs that run programs here, one per line.
func Found() []string { return cuda.Found() }

// Paths measures copies inside the numbered GPUs, between them and with the host.
func Paths(gpus []int) ([]executor.PathRates, error) { return cuda.Paths(gpus) }

// Observer starts to monitor GPUs. This process must not use them yet.
func Observer(gpus []int) (executor.GPUMonitor, error) { return cuda.NewMonitor(gpus) }
