//go:build cuda && linux && cgo && amd64

package kernel

import (
	"slices"

	"github.com/devmap-dev/devmap/modelgraph"
)

// mostRows is how many rows of x kernel fused takes at most. widest is its widest attention head.
const (
	mostRows = 16
	widest   = 128
)

// recognizer finds the operations of kernel fused among the kernels of a decode step.
type recognizer struct {
	calls []*Call
	at    int
}

// next returns the operations that replace the next kernels, and how many kernels they replace: 0
// if there is no operation for the next kernel.
func (list *recognizer) next() (operations []*operation, kernels int) {
	norm, at := list.norm()
	ops, kernels := list.attention(norm, at)
	if ops == nil {
		ops, kernels = list.feedForward(norm, at)
	}
	if ops == nil {
		ops, kernels = list.product(norm, at)
	}
	if ops == nil {
		return list.attends(list.at)
	}
	return ops, kernels
}

// call returns a kernel of that name at a place of the list, or nil.
func (list *recognizer) call(at int, name string) *Call {
	if at >= len(list.calls) || list.calls[at].Kernel.Name != name {
		return nil
	}
	return list.calls[at]
}

// norm returns the next kernel if it is a norm that products may compute themselves. It also returns
// where the products begin.
func (list *recognizer) norm() (*Call, int) {
	norm := list.call(list.at, "norm")
	if norm == nil || norm.text("style") == "layer" || norm.matrix("add") != nil || norm.matrix("bias") != nil || !wide(norm.matrix("x"), norm.matrix("y")) {
		return nil, list.at
	}
	return norm, list.at + 1
}

// gemm returns the product at a place of the list as an operation: nil if kernel fused cannot
// compute it. Its x is what the norm reads, if there is one.
func (list *recognizer) gemm(norm *Call, at int) *operation {
	call := list.call(at, "gemm")
	if call == nil || call.text("form") != "nt" {
		return nil
	}
	a, b, d := call.matrix("a"), call.matrix("b"), call.matrix("d")
	add, bias := call.matrix("add"), call.matrix("bias")
	if !wide(a, b) || d.DType != modelgraph.BF16 || a.Rows > mostRows || a.Columns%8 != 0 || add != nil && add.DType != modelgraph.BF16 {
		return nil
	}
	op := &operation{kind: plainKind, rows: a.Rows, inner: a.Columns, x: a.Address, xStride: a.Stride}
	op.parts[0] = weights{weight: b.Address, to: d.Address, stride: b.Stride, apart: d.Stride, rows: b.Rows}
	if bias != nil {
		op.parts[0].bias = bias.Address
	}
	if add != nil {
		op.add, op.addStride = add.Address, add.Stride
	}
	if norm != nil {
		x, y := norm.matrix("x"), norm.matrix("y")
		if *y != *a {
			return nil
		}
		op.x, op.xStride, op.norm, op.epsilon = x.Address, x.Stride, norm.matrix("weight").Address, norm.number("epsilon", 0)
		if norm.text("style") == "gemma-rms" {
			op.gemma = 1
		}
	}
	return op
}

// several returns the products from a place on that have the same x, as one operation. There are
// up to three.
func (list *recognizer) several(norm *Call, at int) (op *operation, products []*Call) {
	for len(products) < 3 {
		next := list.gemm(norm, at+len(products))
		if next == nil || len(products) > 0 && (next.x != op.x || next.inner != op.inner || next.rows != op.rows || next.add != 0 || op.add != 0) {
			break
		}
		if len(products) == 0 {
			op = next
		}
		op.parts[len(products)] = next.parts[0]
		products = append(products, list.calls[at+len(products)])
	}
	return op, products
}

// product is a norm and the products that read it, or one product, with the arg max of what it makes.
// No other kernel may read the norm's result.
func (list *recognizer) product(norm *Call, at int) ([]*operation, int) {
	op, products := list.several(norm, at)
	if op == nil {
		return nil, 0
	}
	end := at + len(products)
	if norm != nil && list.read(norm.matrix("y"), end) {
		return nil, 0
	}
	if picks := list.call(end, "argmax"); picks != nil && len(products) == 1 && *picks.matrix("x") == *products[0].matrix("d") {
		op.picks = true
		pick := &operation{kind: pickKind, rows: op.rows, ids: picks.matrix("y").Address, picks: true}
		pick.parts[0] = op.parts[0]
		return []*operation{op, pick}, end + 1 - list.at
	}
	return []*operation{op}, end - list.at
}

// feedForward is a gate and what it is multiplied with.
func (list *recognizer) feedForward(norm *Call, at int) ([]*operation, int) {
	op, products := list.several(norm, at)
	number := 2
	gate := list.call(at+number, "gate")
	if gate == nil {
		number = 1
		gate = list.call(at+number, "gate")
	}
	if gate == nil || len(products) < number || op.add != 0 {
		return nil, 0
	}
	one, two, y := gate.matrix("gate"), gate.matrix("up"), gate.matrix("y")
	if number == 1 {
		op.halve(y.Columns)
	}
	if one.Address != op.parts[0].to || two.Address != op.parts[1].to || y.Address != one.Address || op.parts[0].rows != y.Columns || op.parts[1].rows != y.Columns {
		return nil, 0
	}
	op.kind = gatedKind
	op.activation = int64(slices.Index([]string{"silu", "gelu", "gelu_tanh", "relu", "tanh"}, gate.text("activation")))
	end := at + number + 1
	if op.activation < 0 || norm != nil && list.read(norm.matrix("y"), end) || list.read(two, end) {
		return nil, 0
	}
	op.parts[2] = weights{}
	return []*operation{op}, end - list.at
}

// halve makes two products of one, whose weight has the rows of both.
func (op *operation) halve(rows int64) {
	op.parts[1] = op.parts[0]
	op.parts[1].weight += addressOfRow(&op.parts[0], rows)
	if op.parts[0].bias != 0 {
		op.parts[1].bias += addressOfValue(rows)
	}
	op.parts[1].to += addressOfValue(rows)
	op.parts[0].rows, op.parts[1].rows = rows, rows
}

// read reports whether a kernel from a place on reads a matrix before another one writes it.
func (list *recognizer) read(matrix *Matrix, from int) bool {
	for _, call := range list.calls[from:] {
		written := false
		for i := range call.Operands {
			if !overlap(&call.Operands[i], matrix) {
				continue
			}
			if call.Kernel.Operands[i].Mode != '>' {
				return true
			}
			written = true
		}
		if written {
			return false
		}
	}
	return false
}
