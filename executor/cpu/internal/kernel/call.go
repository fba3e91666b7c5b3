// Package kernel is the kernels of package recipe on a processor, each as plain
// as it can be written: values are read, worked out in fp32, and rounded where
// a tensor of the model in PyTorch would be. Matrix products are gonum's.
package kernel

import (
	"fmt"
	"strconv"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
)

// Call is a kernel with the matrices that it touches.
type Call struct {
	Kernel *recipe.Kernel
	// Operands are those of the kernel, in its order. Uses are, of a gradient
	// whose weight is tied, those of all uses in module order, its own among
	// them; nil for others.
	Operands []Matrix
	Uses     [][]Matrix
	// Past is how many tokens were generated before: positions behind "past"
	// are moved by it.
	Past int64
	// Begins: a gradient ('*') is written, not added to.
	Begins    bool
	Step      int64 // AdamW's t, from 1
	Optimizer *executor.Optimizer
}

// Run carries a kernel out. An error is a kernel that does not exist, or lacks
// what it needs: a defect of the recipe, never of the data.
func Run(call *Call) error {
	run := kernels[call.Kernel.Name]
	if run == nil {
		return fmt.Errorf("there is no kernel %q", call.Kernel.Name)
	}
	return run(call)
}

// kernels are those that a recipe may name.
var kernels = map[string]func(call *Call) error{}

// matrix is the operand of a role, nil where there is none.
func (call *Call) matrix(role string) *Matrix {
	for i := range call.Kernel.Operands {
		if call.Kernel.Operands[i].Role == role {
			return &call.Operands[i]
		}
	}
	return nil
}

// text is a dim; empty where it is not given.
func (call *Call) text(name string) string {
	for _, dim := range call.Kernel.Dims {
		if dim.Name == name {
			return dim.Value
		}
	}
	return ""
}

// size and number are dims that there must be, or else otherwise.
func (call *Call) size(name string, otherwise int64) int64 {
	value, err := strconv.ParseInt(call.text(name), 10, 64)
	if err != nil {
		return otherwise
	}
	return value
}

func (call *Call) number(name string, otherwise float64) float64 {
	value, err := strconv.ParseFloat(call.text(name), 64)
	if err != nil {
		return otherwise
	}
	return value
}

// position is where row i stands in its sequence.
func (call *Call) position(row int64) int64 {
	if past := call.size("past", -1); past >= 0 {
		return past + call.Past
	}
	return row % call.size("seq", 1)
}
