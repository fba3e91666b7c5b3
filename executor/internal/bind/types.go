package bind

import (
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Instr is what an instruction does to its arena. Sends, receives and fences do only what their
// channel says.
type Instr struct {
	Runs []Run
	// Norms and Total belong to the optimizer's instructions that step no unit. Norms comes before
	// Runs, which write into its To.
	Norms *Norms
	Total *Total
	// Unwritten are the ends of buffers that the instruction overwrites and its kernels do not
	// reach: they are cleared.
	Unwritten []Stretch
}

// Run is kernels of one unit with the places of their tensors, all in the arena of the
// instruction's device. A stage of units that only pass the stream has a run without kernels, which
// copies.
type Run struct {
	Unit    int // of the recipe
	Kernels []recipe.Kernel
	// Offsets has an element for each tensor of the unit, for the instruction's micro-batch if the
	// tensor holds all of them. It is -1 if Kernels do not touch the tensor.
	Offsets []int64
	// Uses has an element for each tensor, in the optimizer's runs. For the gradient of a tied
	// weight it lists the offsets of all uses' gradients in module order: kernels read their sum.
	// It is nil for other tensors, and as a whole if there is none.
	Uses [][]int64
	// Past is how many tokens were generated before this pass. It moves decode's positions, which
	// begin at the prompt's length.
	Past int64
	// Begins: gradients ('*') are overwritten, not added to.
	Begins bool
	// Before and After are copies at a stage's ends.
	Before, After []Copy

	parts int64
	code  *recipe.Code
}

// Area is a matrix in an arena: Rows × Columns values, with rows Stride values apart.
type Area struct {
	Offset                int64
	DType                 modelgraph.DType
	Rows, Columns, Stride int64
}

// Area returns the place of an operand: of the run's micro-batch if its tensor holds all of them.
func (run *Run) Area(operand *recipe.Operand) Area {
	tensor := &run.code.Tensors[operand.Tensor]
	area := Area{Offset: run.Offsets[operand.Tensor], DType: tensor.DType, Rows: tensor.Rows, Columns: tensor.Columns, Stride: tensor.Columns}
	switch {
	case tensor.Parts:
		area.Rows /= run.parts
	case operand.Rows > 0:
		area.Rows, area.Columns = operand.Rows, operand.Columns
		area.Offset += (operand.Row*tensor.Columns + operand.Column) * bytesOf(tensor.DType)
	}
	return area
}

// Copy moves bytes within an arena.
type Copy struct{ From, To, Bytes int64 }

// Stretch is bytes [Offset, Offset+Bytes) of an arena.
type Stretch struct{ Offset, Bytes int64 }

// Norms gathers squared norms: a number in fp32 for each parameter of the model, in module order.
// Runs write those of this device's units. The others are copied from From, a received vector, or 0
// if From is -1.
type Norms struct{ From, To, Count int64 }

// Total adds up the Count squared norms at From, in order, into one number at To.
type Total struct{ From, To, Count int64 }

func bytesOf(dtype modelgraph.DType) int64 { return dtype.Bits() / 8 }
