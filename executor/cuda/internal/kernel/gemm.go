//go:build cuda && linux && cgo && amd64

package kernel

import (
	"errors"
	"fmt"
	"sync"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/source"
)

// gemm is d = a·b + bias + add by cuBLASLt, and adds to a gradient. The bias is the product's
// epilogue, and the summand its beta·C. The library decides whether the product is rounded to d's
// type before the addition, as in PyTorch.
//
// The library's kernels compute other bits if C is not D. Whether add is in d's place depends on
// the cut: a stage changes its stream in place, but not a received slot. So C is always D, and add
// is copied there. Training does not need the copy (bind's TestAdded). No forward changes the
// stream in place, because backward reads it again. Every backward changes its gradient in place.
func gemm(call *Call) (Launch, error) {
	shape, operands, err := productOf(call)
	if err != nil {
		return nil, err
	}
	var before Launch
	if operands.C != operands.D && !call.Trains {
		if before, err = copied(call); err != nil {
			return nil, err
		}
		operands.C, shape.StrideC = operands.D, shape.StrideD
	}
	products, err := call.Kernels.Products()
	if err != nil {
		return nil, err
	}
	product, err := products.Prepare(call.Workspace, shape, operands)
	if err != nil {
		return nil, err
	}
	return func(step *Step) error {
		if before != nil {
			if err := before(step); err != nil {
				return err
			}
		}
		return product.Run(streamOf(step))
	}, nil
}

// copied returns a launch that copies the call's add to d.
func copied(call *Call) (Launch, error) {
	lines, err := copies()
	if err != nil {
		return nil, err
	}
	kernel := &recipe.Kernel{Name: "copy", Operands: []recipe.Operand{{Role: "x"}, {Role: "y", Mode: '>'}}}
	return prepare(lines, &Call{Kernel: kernel, Operands: []Matrix{*call.matrix("add"), *call.matrix("d")}, Kernels: call.Kernels, Workspace: call.Workspace})
}

// copies returns the lines of the recipe's copy, read once in a process.
var copies = sync.OnceValues(func() ([]line, error) {
	launches, err := source.Launches()
	if err != nil {
		return nil, err
	}
	return linesOf(launches["copy"])
})

// productOf returns a gemm's shape and operands for the library.
func productOf(call *Call) (*blas.Shape, *blas.Operands, error) {
	a, errA := call.need("a")
	b, errB := call.need("b")
	d, errD := call.need("d")
	if err := errors.Join(errA, errB, errD); err != nil {
		return nil, nil, err
	}
	form := call.text("form")
	shape := &blas.Shape{
		TransposeA: form == "tn", TransposeB: form == "nt",
		StrideA: a.Stride, StrideB: b.Stride, StrideC: d.Stride, StrideD: d.Stride, In: a.DType, Out: d.DType,
	}
	shape.Rows, shape.Inner = turned(a, shape.TransposeA)
	inner, columns := turned(b, shape.TransposeB)
	shape.Columns = columns
	if inner != shape.Inner || d.Rows != shape.Rows || d.Columns != columns || a.DType != b.DType {
		return nil, nil, fmt.Errorf("form=%s: a is %v, b %v and d %v", form, a, b, d)
	}
	operands := &blas.Operands{A: a.Address, B: b.Address, C: d.Address, D: d.Address, Alpha: 1}
	if bias := call.matrix("bias"); bias != nil {
		if bias.Rows != 1 || bias.Columns != columns || bias.DType != d.DType {
			return nil, nil, fmt.Errorf("form=%s: bias is %v and d %v", form, bias, d)
		}
		shape.Bias, operands.Bias = true, bias.Address
	}
	return shape, operands, addTo(call, d, shape, operands)
}

// addTo sets what the product is added to: the call's add, or what d holds.
func addTo(call *Call, d *Matrix, shape *blas.Shape, operands *blas.Operands) error {
	add, adds := call.matrix("add"), call.adds()
	switch {
	case add == nil && !adds:
		return nil
	case add == nil:
	case adds || add.Rows != d.Rows || add.Columns != d.Columns || add.DType != d.DType:
		return fmt.Errorf("add is %v and d %v", add, d)
	default:
		operands.C, shape.StrideC = add.Address, add.Stride
	}
	operands.Beta = 1
	return nil
}

// turned returns a matrix's rows and columns, swapped if turn is true.
func turned(matrix *Matrix, turn bool) (rows, columns int64) {
	if turn {
		return matrix.Columns, matrix.Rows
	}
	return matrix.Rows, matrix.Columns
}
