//go:build !(cuda && linux && cgo && amd64)

package cuda

import "github.com/devmap-dev/devmap/executor"

// New returns [executor.ErrNotBuilt]: this is a build without CUDA.
func New(options executor.GPUOptions) (executor.Backend, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	return nil, executor.ErrNotBuilt
}

// GPUs returns [executor.ErrNotBuilt].
func GPUs() ([]executor.GPU, error) { return nil, executor.ErrNotBuilt }

// Paths returns [executor.ErrNotBuilt].
func Paths([]int) ([]executor.PathRates, error) { return nil, executor.ErrNotBuilt }

// Found returns nothing: this is a build without CUDA.
func Found() []string { return nil }

// NewMonitor returns [executor.ErrNotBuilt].
func NewMonitor([]int) (executor.GPUMonitor, error) { return nil, executor.ErrNotBuilt }
