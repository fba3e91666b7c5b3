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

// Matrix is Rows × Columns values on the GPU, a row Stride values behind the one
// before.
type Matrix struct {
	Address               driver.Address
	DType                 modelgraph.DType
	Rows, Columns, Stride int64
}

// String is what errors say of a matrix.
func (matrix *Matrix) String() string {
	return fmt.Sprintf("%d × %d of %v", matrix.Rows, matrix.Columns, matrix.DType)
}

// Call is a kernel of an instruction with the matrices that it touches: the part that
// does not change from step to step.
type Call struct {
	Kernel *recipe.Kernel
	// Operands are those of the kernel, in its order. Uses are, of a gradient whose
	// weight is tied, those of all uses in module order, its own among them.
	Operands []Matrix
	Uses     [][]Matrix
	Trains   bool // the program has backwards
	Begins   bool // a gradient ('*') is written, not added to

	Kernels *Kernels
	// Workspace is what products may use for themselves: the program's buffer.
	// Kernels run on one stream of a device, so there is one.
	Workspace blas.Workspace
}

// Step is what differs from one time that a call is given to the next; its queue is a
// [*driver.Stream].
type Step = schedule.Args

// Launch gives what a call does to the step's stream. Nothing waits.
type Launch = schedule.Call

func streamOf(step *Step) *driver.Stream { return step.Queue.(*driver.Stream) } //nolint:forcetypeassert // there are no others

// Func prepares a kernel once: its module is loaded, its arguments packed, a
// product's algorithm found.
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
