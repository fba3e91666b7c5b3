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

// Witness looks at GPUs beside the machines that run on them.
type Witness struct{}

// NewWitness refuses: this is a build without CUDA.
func NewWitness([]int) (*Witness, error) { return nil, ErrNotBuilt }

// GPUs are none.
func (*Witness) GPUs() []Witnessed { return nil }

// Held is nothing.
func (*Witness) Held() []Holding { return nil }

// Look sees nothing.
func (*Witness) Look() ([]Seen, error) { return nil, nil }

// Refill has nothing to fill.
func (*Witness) Refill(int, int64) (Refilled, error) { return Refilled{}, ErrNotBuilt }

// Close has nothing to give back.
func (*Witness) Close() error { return nil }
