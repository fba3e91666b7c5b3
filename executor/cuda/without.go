//go:build !(cuda && linux && cgo && amd64)

package cuda

import "github.com/devmap-dev/devmap/executor"

// New refuses: this is a build without CUDA.
func New(options Options) (executor.Backend, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	return nil, ErrNotBuilt
}

// GPUs refuses: this is a build without CUDA.
func GPUs() ([]GPU, error) { return nil, ErrNotBuilt }

// Paths refuses: this is a build without CUDA.
func Paths([]int) ([]PathRates, error) { return nil, ErrNotBuilt }

// Found is nothing: this is a build without CUDA.
func Found() []string { return nil }

// NewWitness refuses: this is a build without CUDA.
func NewWitness([]int) (*Witness, error) { return nil, ErrNotBuilt }
