//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Matrix is Rows × Columns values on the GPU, with rows Stride values apart.
type Matrix struct {
	Address               driver.Address
	DType                 modelgraph.DType
	Rows, Columns, Stride int64
}

// String describes a matrix for errors.
func (matrix *Matrix) String() string {
	return fmt.Sprintf("%d × %d of %v", matrix.Rows, matrix.Columns, matrix.DType)
}

// Call is a kernel of an instruction with its matrices: everything that does not change from step
// to step.
type Call struct {
	Kernel *recipe.Kernel
	// Operands are in the kernel's order. Uses has an element for each: for the gradient of a tied
	// weight, the gradients of all uses in module order, its own included.
	Operands []Matrix
	Uses     [][]Matrix
	Trains   bool // the program has backwards
	Begins   bool // a gradient ('*') is overwritten, not added to

	Kernels *Kernels
	// Workspace is the memory of products, a buffer of the program. Kernels run on one stream of a
	// device, so there is one.
	Workspace blas.Workspace
}

// Step is what changes between two runs of a call. Its queue is a [*driver.Stream].
type Step = schedule.Args

// Launch queues a call on the step's stream. It does not wait.
type Launch = schedule.Call

func streamOf(step *Step) *driver.Stream { return step.Queue.(*driver.Stream) } //nolint:errcheck // there are no others

// Func prepares a kernel once: it loads the module, packs arguments, and finds a product's
// algorithm.
type Func func(call *Call) (Launch, error)

// Prepare prepares the kernel of a call.
func Prepare(table map[string]Func, call *Call) (Launch, error) {
	prepare := table[call.Kernel.Name]
	if prepare == nil {
		return nil, fmt.Errorf("there is no CUDA kernel %s", call.Kernel.Name)
	}
	launch, err := prepare(call)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", call.Kernel.Name, err)
	}
	return launch, nil
}
