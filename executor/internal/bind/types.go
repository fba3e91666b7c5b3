package bind

import (
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Instr is what an instruction does to its arena; sends, receives and fences do
// nothing to it but what their channel says.
type Instr struct {
	Runs []Run
	// Norms and Total are of the optimizer's instructions without a unit's step:
	// Norms before Runs, which write into its To.
	Norms *Norms
	Total *Total
	// Unwritten are the ends of buffers that the instruction writes whole and its
	// kernels do not reach: they are cleared.
	Unwritten []Stretch
}

// Run is kernels of one unit with the places of their tensors, all in the arena
// of the instruction's device. A stage of units that pass has one without
// kernels, which copies.
type Run struct {
	Unit    int // of the recipe
	Kernels []recipe.Kernel
	// Offsets are those of the unit's tensors, of the instruction's micro-batch
	// where a tensor holds all of them; -1 for one that Kernels do not touch.
	Offsets []int64
	// Uses are, of a gradient whose weight is tied, the offsets of all uses'
	// gradients in module order, in the optimizer's runs: kernels read their sum.
	// Nil for all others, and as a whole where there is none.
	Uses [][]int64
	// Past is how many tokens were generated before this pass: what decode's
	// positions, which begin at the prompt's length, are moved by.
	Past int64
	// Begins: gradients ('*') are written, not added to.
	Begins bool
	// Before and After are copies at a stage's border.
	Before, After []Copy

	parts int64
	code  *recipe.Code
}

// Area is a matrix in an arena: Rows × Columns values, a row Stride values
// behind the one before.
type Area struct {
	Offset                int64
	DType                 modelgraph.DType
	Rows, Columns, Stride int64
}

// Area is where an operand of a kernel of the run lies: of its micro-batch,
// where its tensor holds all of them.
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

// Norms gathers squared norms: a number in fp32 for each parameter of the
// model, in module order. Runs write those of this device's units; the others'
// are taken over from From, a vector that came in (-1: there is none, they are 0).
type Norms struct{ From, To, Count int64 }

// Total adds up the Count squared norms at From, in order, into one number at To.
type Total struct{ From, To, Count int64 }

func bytesOf(dtype modelgraph.DType) int64 { return dtype.Bits() / 8 }
