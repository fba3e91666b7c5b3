//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"
	"strconv"
)

// matrix returns the operand of a role, nil if there is none.
func (call *Call) matrix(role string) *Matrix {
	for i := range call.Kernel.Operands {
		if call.Kernel.Operands[i].Role == role {
			return &call.Operands[i]
		}
	}
	return nil
}

// need returns the operand of a role, or an error if there is none.
func (call *Call) need(role string) (*Matrix, error) {
	if found := call.matrix(role); found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("it has no operand %q", role)
}

// uses returns a gradient as the optimizer reads it: for a tied weight, the gradients of all uses.
func (call *Call) uses(role string) ([]Matrix, error) {
	for i := range call.Kernel.Operands {
		if call.Kernel.Operands[i].Role == role && i < len(call.Uses) && len(call.Uses[i]) > 0 {
			return call.Uses[i], nil
		}
	}
	matrix, err := call.need(role)
	if err != nil {
		return nil, err
	}
	return []Matrix{*matrix}, nil
}

// adds reports whether gradients ('*') are added to, not overwritten.
func (call *Call) adds() bool {
	for i := range call.Kernel.Operands {
		if call.Kernel.Operands[i].Mode == '*' {
			return !call.Begins
		}
	}
	return false
}

// text returns a dim, empty if it is not given.
func (call *Call) text(name string) string { return call.Kernel.Dim(name) }

// size and number return a dim, or the default value if the call lacks it.
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
