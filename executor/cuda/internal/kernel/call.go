//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Matrix is Rows × Columns values on the GPU, a row Stride values behind the one
// before.
type Matrix struct {
	Address               driver.Address
	DType                 modelgraph.DType
	Rows, Columns, Stride int64
}

// Call is a kernel of an instruction with the matrices that it touches. What it
// launches is in Stream's order, and nothing waits. It is made once and given in
// every step, to one thread; Past, Step and Optimizer alone change in between.
type Call struct {
	Kernel *recipe.Kernel
	// Operands are those of the kernel, in its order. Uses are, of a gradient whose
	// weight is tied, those of all uses in module order, its own among them.
	Operands []Matrix
	Uses     [][]Matrix
	Past     int64 // tokens that were generated before
	Begins   bool  // a gradient ('*') is written, not added to
	Step     int64 // AdamW's t, from 1

	Optimizer *executor.Optimizer
	// Prepared is what a Func keeps from one time to the next, nil at the first.
	Prepared any

	Stream  *driver.Stream
	Kernels *Kernels
	// Workspace is what products may use for themselves: the program's buffer.
	// Kernels run on one stream of a device, so there is one.
	Workspace blas.Workspace
}

// Func launches a kernel.
type Func func(call *Call) error

// Table is the kernels that there are.
var Table = map[string]Func{}

// Run launches the kernel of a call.
func Run(table map[string]Func, call *Call) error {
	launch := table[call.Kernel.Name]
	if launch == nil {
		return fmt.Errorf("there is no CUDA kernel %s", call.Kernel.Name)
	}
	return launch(call)
}
