// Package kernel implements the kernels of package recipe on a processor, as plainly as possible.
// Values are read, computed in fp32, and rounded if PyTorch would store them in a tensor of the
// model. Matrix products are gonum's.
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
	// Operands are in the kernel's order. Uses has an element for each. For the gradient of a tied
	// weight it is the gradients of all uses in module order, its own included. For others it is
	// nil.
	Operands []Matrix
	Uses     [][]Matrix
	// Past is how many tokens were generated before. It moves the positions of kernels with the dim
	// "past".
	Past int64
	// Begins: a gradient ('*') is overwritten, not added to.
	Begins    bool
	Step      int64 // AdamW's t, from 1
	Optimizer *executor.Optimizer
}

// matrix returns the operand of a role. It is nil if the kernel has none or the operand has no
// place.
func (call *Call) matrix(role string) *Matrix {
	for i := range call.Kernel.Operands {
		if call.Kernel.Operands[i].Role == role && call.Operands[i].Data != nil {
			return &call.Operands[i]
		}
	}
	return nil
}

// need returns the matrices of roles, with an error if one is missing.
func (call *Call) need(roles ...string) ([]*Matrix, error) {
	found := make([]*Matrix, len(roles))
	for i, role := range roles {
		if found[i] = call.matrix(role); found[i] == nil {
			return nil, fmt.Errorf("%s has no operand %q", call.Kernel.Name, role)
		}
	}
	return found, nil
}

// adds reports whether a gradient ('*') is added to: after the first micro-batch.
func (call *Call) adds(role string) bool {
	for i := range call.Kernel.Operands {
		if operand := &call.Kernel.Operands[i]; operand.Role == role {
			return operand.Mode == '*' && !call.Begins
		}
	}
	return false
}

// text returns a dim, empty if it is not given.
func (call *Call) text(name string) string { return call.Kernel.Dim(name) }

// size and number return a dim, or defaultValue if it is no number.
func (call *Call) size(name string, defaultValue int64) int64 {
	value, err := strconv.ParseInt(call.text(name), 10, 64)
	if err != nil {
		return defaultValue
	}
	return value
}

func (call *Call) number(name string, defaultValue float64) float64 {
	value, err := strconv.ParseFloat(call.text(name), 64)
	if err != nil {
		return defaultValue
	}
	return value
}

// position returns the position of row i in its sequence.
func (call *Call) position(row int64) int64 {
	if past := call.size("past", -1); past >= 0 {
		return past + call.Past
	}
	return row % call.size("seq", 1)
}
