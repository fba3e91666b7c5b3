//go:build !(cuda && linux && cgo && amd64)

package cuda

import "github.com/devmap-dev/devmap/executor"

// New refuses: this is a build without CUDA.
func New(options executor.GPUOptions) (executor.Backend, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	return nil, executor.ErrNotBuilt
}

// GPUs refuses: this is a build without CUDA.
func GPUs() ([]executor.GPU, error) { return nil, executor.ErrNotBuilt }

// Paths refuses: this is a build without CUDA.
func Paths([]int) ([]executor.PathRates, error) { return nil, executor.ErrNotBuilt }

// Found is nothing: this is a build without CUDA.
func Found() []string { return nil }

// NewMonitor refuses: this is a build without CUDA.
func NewMonitor([]int) (executor.GPUMonitor, error) { return nil, executor.ErrNotBuilt }
