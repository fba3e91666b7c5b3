package recipetest

import (
	"strconv"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/recipe"
)

// Matrix is a part of a tensor: Rows × Columns values of Values, from First on, with rows Stride
// values apart. Token ids are numbers too.
type Matrix struct {
	Values        []float64
	Rows, Columns int64
	First, Stride int64
}

// At returns the address of a value.
func (matrix Matrix) At(i, j int64) *float64 {
	return &matrix.Values[matrix.First+i*matrix.Stride+j]
}

// each calls f for every element.
func (matrix Matrix) each(f func(i, j int64, at *float64)) {
	for i := range matrix.Rows {
		for j := range matrix.Columns {
			f(i, j, matrix.At(i, j))
		}
	}
}

// Call is one kernel with its matrices.
type Call struct {
	Kernel *recipe.Kernel
	// Operands are in the kernel's order. Uses has an element for each. For the gradient of a tied
	// weight it is the gradients of all uses, its own included: the kernel reads their sum. For
	// others it is nil.
	Operands []Matrix
	Uses     [][]Matrix
	// Past is how many tokens were generated before. It moves the positions of kernels with the dim
	// "past".
	Past int64
	// Begins: a gradient ('*') is overwritten, not added to.
	Begins    bool
	Step      int64 // AdamW's t, from 1
	Optimizer Optimizer
}

// Optimizer has the settings of the optimizer's kernels, as in torch.optim.AdamW and SGD. With Clip
// 0 gradients are not scaled.
type Optimizer struct{ Rate, Beta1, Beta2, Epsilon, Decay, Clip float64 }

// kernelRun is a kernel with its sizes and operands by name.
type kernelRun struct {
	*Call
	tb       testing.TB
	dims     map[string]string
	operands map[string]int
	// dim and factored are the width of a head and the factor of scores, which attention's
	// innermost loops read.
	dim      int64
	factored float64
}

func (run *kernelRun) has(name string) bool { return run.dims[name] != "" }

func (run *kernelRun) given(role string) bool { _, ok := run.operands[role]; return ok }

func (run *kernelRun) size(name string) int64 {
	value, err := strconv.ParseInt(run.dims[name], 10, 64)
	if err != nil {
		run.tb.Fatalf("%s: %s=%q: %v", run.Kernel.Name, name, run.dims[name], err)
	}
	return value
}

func (run *kernelRun) number(name string) float64 {
	value, err := strconv.ParseFloat(run.dims[name], 64)
	if err != nil {
		run.tb.Fatalf("%s: %s=%q: %v", run.Kernel.Name, name, run.dims[name], err)
	}
	return value
}

func (run *kernelRun) operand(role string) Matrix {
	i, ok := run.operands[role]
	if !ok {
		run.tb.Fatalf("%s has no operand %q", run.Kernel.Name, role)
	}
	return run.Operands[i]
}

// optional returns an operand that a kernel may lack: then it has no values.
func (run *kernelRun) optional(role string) Matrix {
	if !run.given(role) {
		return Matrix{}
	}
	return run.operand(role)
}

// begin clears a gradient that is not added to ('*' in the first micro-batch,
// '>' in any).
func (run *kernelRun) begin(role string) {
	if run.Begins || run.Kernel.Operands[run.operands[role]].Mode != '*' {
		run.operand(role).each(func(_, _ int64, at *float64) { *at = 0 })
	}
}

// position is the position of row i in its sequence.
func (run *kernelRun) position(i int64) int64 {
	if run.has("past") {
		return run.size("past") + run.Past
	}
	return i % run.size("seq")
}
