// Package bind says where in an arena every tensor of every instruction lies.
// A program names the buffers that an instruction touches, the recipe the
// tensors that its kernels do: what they mean to each other is written here,
// for all backends, and held to what the program declares.
package bind

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Bound is a program with its recipe.
type Bound struct {
	Graph    *modelgraph.Graph
	Workload *costmodel.Workload
	Recipe   *recipe.Model
	Program  *program.Program
}

// Run is kernels of one unit with the places of their tensors, all in the arena
// of the instruction's device.
type Run struct {
	Unit    int // of the recipe
	Kernels []recipe.Kernel
	// Offsets are those of the unit's tensors, of the instruction's micro-batch
	// where a tensor holds all of them; -1 for one that this instruction has no
	// buffer of. A kernel that writes nothing which is there is not in Kernels.
	Offsets []int64
	// Uses are, of a gradient whose weight is tied, the offsets of all uses'
	// gradients in module order: kernels read their sum. Nil for all others.
	Uses [][]int64
	// Past is how many tokens were generated before this pass: what decode's
	// positions, which begin at the prompt's length, are moved by.
	Past int64
	// Begins: gradients ('*') are written, not added to.
	Begins bool
	// Before and After are copies at a stage's border.
	Before, After []Copy
}

// Copy moves bytes within an arena.
type Copy struct{ From, To, Bytes int64 }

// Instr is what an instruction does to its arena; sends, receives and fences do
// nothing to it but what their channel says.
type Instr struct {
	Runs []Run
	// Norms and Total are of the optimizer's instructions without a unit's step.
	Norms *Norms
	Total *Total
	// Tails are the stretches that kernels leave of the end of buffers which the
	// instruction writes whole: they are cleared.
	Tails []Stretch
}

// Stretch is bytes [Offset, Offset+Bytes) of an arena.
type Stretch struct{ Offset, Bytes int64 }

// Norms gathers squared norms: a number in fp32 for each parameter of the
// model, in module order. Runs write those of this device's units; the others'
// are taken over from From, a vector that came in (-1: there is none, they are 0).
type Norms struct{ From, To, Count int64 }

// Total adds up the Count squared norms at From, in order, into one number at To.
type Total struct{ From, To, Count int64 }

// Param is a tensor of a parameter that a load, a zero or the optimizer keeps in
// an arena.
type Param struct {
	Device int
	Buffer int32
	Offset int64 // in the arena
	// Name is the framework's full name (named_parameters); Kind what it is of
	// the parameter.
	Name          string
	Kind          Kind
	DType         modelgraph.DType
	Rows, Columns int64
	// Copied: another device owns the parameter, this is a copy of it.
	Copied bool
}

// Kind is what a tensor is of a parameter.
type Kind string

// The kinds.
const (
	Weight   Kind = "weight"
	Master   Kind = "master"
	Mean     Kind = "mean"   // AdamW's first moment
	Square   Kind = "square" // AdamW's second moment
	Gradient Kind = "gradient"
)
