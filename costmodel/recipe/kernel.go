package recipe

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
)

// The passes through a unit with kernels of their own: forward, backward or its two halves, decode
// (one token a sequence, at position Seq + the number generated), norms, and step. Recompute runs
// some of forward's.
const (
	passForward  = "forward"
	passBackward = "backward"
	passInput    = "backward-input"
	passWeight   = "backward-weight"
	passDecode   = "decode"
	passSquares  = "norms"
	passStep     = "step"
)

// Code is what runs of a unit; equal units share one.
type Code struct {
	// Tensors are all that the kernels name.
	Tensors []Tensor
	// Recompute are forward's kernels, in its scratch, that make backward's inputs; empty if
	// nothing is recomputed. Norms and Step are the optimizer's, of the unit's own parameters. A
	// tied one's gradient is the sum over its uses, in module order.
	//
	// If the schedule splits the backward, Backward is its first half, and Learn the second: the
	// kernels that write gradients of weights.
	Forward, Recompute, Backward, Learn, Decode, Norms, Step Routine
	// Copied is the part of Backward's work that copies what Recompute made, for Learn.
	Copied costmodel.Pass
	split  bool
}

// Routine is the kernels of a pass, in the order in which they run.
type Routine struct {
	Kernels []Kernel
	// Scratch is the bytes of the temporaries, at planned offsets.
	Scratch int64
	// Work is the sum over the kernels. Traffic of products counts in
	// [passDecode] alone: with many rows their arithmetic hides it.
	Work costmodel.Pass
}

// Kernel is one call of a kernel.
type Kernel struct {
	Name string
	// Dims are its sizes and constants, in the order in which they are printed.
	Dims     []Dim
	Operands []Operand
	// Products are FLOPs of matrix products, Attention of attention; Bytes are read and written.
	Products, Attention, Bytes float64
	// Unaligned: rows of a product begin at addresses that are not a multiple of 16 bytes.
	Unaligned bool
}

// Dim is a size or a constant of a kernel: m=4096, epsilon=1e-05.
type Dim struct{ Name, Value string }

// Operand is a tensor that a kernel touches, or a part of it.
type Operand struct {
	Role string // a, b, bias, …
	// Mode is how the operand is touched, as its text begins:
	//
	//	' '  read
	//	'>'  written: all of the part, whatever was there
	//	'+'  read and written in place
	//	'*'  a gradient: written in the first micro-batch's backward, added to in the others'
	Mode   byte
	Tensor int // index in [Code.Tensors]
	// [Row, Row+Rows) × [Column, Column+Columns) is the part; with Rows 0 it is the whole tensor.
	Row, Rows, Column, Columns int64
}

const (
	modeRead   = ' '
	modeWrite  = '>'
	modeUpdate = '+'
	modeGather = '*'
)

// Dim is a dim's value; empty if it is not given.
func (kernel *Kernel) Dim(name string) string {
	for _, dim := range kernel.Dims {
		if dim.Name == name {
			return dim.Value
		}
	}
	return ""
}

// text is a kernel's line: its name, its dims, and after a colon its operands
// as mode, role = tensor and [rows,columns] of a part.
func (code *Code) text(kernel *Kernel) string {
	var line strings.Builder
	line.WriteString(kernel.Name)
	for _, dim := range kernel.Dims {
		fmt.Fprintf(&line, " %s=%s", dim.Name, dim.Value)
	}
	line.WriteString(" :")
	for i := range kernel.Operands {
		operand := &kernel.Operands[i]
		line.WriteByte(' ')
		if operand.Mode != modeRead {
			line.WriteByte(operand.Mode)
		}
		fmt.Fprintf(&line, "%s=%s", operand.Role, code.Tensors[operand.Tensor].Name)
		if operand.Rows > 0 {
			fmt.Fprintf(&line, "[%d:%d,%d:%d]", operand.Row, operand.Row+operand.Rows, operand.Column, operand.Column+operand.Columns)
		}
	}
	return line.String()
}

// Lines is the code as text: a line a tensor, then a line a kernel after the
// name of its pass. Kernels that recompute runs too have "+" after it.
func (code *Code) Lines() []string {
	lines := make([]string, 0, len(code.Tensors)+len(code.Forward.Kernels)+len(code.Backward.Kernels)+len(code.Decode.Kernels))
	for i := range code.Tensors {
		lines = append(lines, code.Tensors[i].text())
	}
	again := 0
	for i := range code.Forward.Kernels {
		line := code.text(&code.Forward.Kernels[i])
		mark := ""
		if again < len(code.Recompute.Kernels) && code.text(&code.Recompute.Kernels[again]) == line {
			again, mark = again+1, "+"
		}
		lines = append(lines, passForward+mark+" "+line)
	}
	back := passBackward
	if code.split {
		back = passInput
	}
	for _, pass := range []struct {
		name    string
		routine *Routine
	}{{back, &code.Backward}, {passWeight, &code.Learn}, {passDecode, &code.Decode}, {passSquares, &code.Norms}, {passStep, &code.Step}} {
		for i := range pass.routine.Kernels {
			lines = append(lines, pass.name+" "+code.text(&pass.routine.Kernels[i]))
		}
	}
	return lines
}
