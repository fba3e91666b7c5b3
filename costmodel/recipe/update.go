package recipe

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// update writes the optimizer's kernels: the squared norm of every gradient,
// for clipping, and the step of every parameter that the unit owns.
func (writer *writer) update() {
	if writer.regions.Tensors == 0 {
		return
	}
	norms := writer.add(Tensor{Name: "norms", Class: classNorms, DType: modelgraph.F32, Rows: writer.regions.Tensors, Columns: 1, Tie: -1})
	total := writer.add(Tensor{Name: "total", Class: classTotal, DType: modelgraph.F32, Rows: 1, Columns: 1, Tie: -1})
	writer.pass, writer.routine = passSquares, &writer.code.Norms
	row := int64(0)
	writer.owned(func(own *weight, dims []Dim) {
		writer.kernel("square", dims, in("x", own.gradient), writer.rowsOf(out("y", norms), row, 1))
		row++
	})
	writer.pass, writer.routine = passStep, &writer.code.Step
	writer.owned(func(own *weight, dims []Dim) {
		operands := []Operand{in("gradient", own.gradient), in("total", total)}
		if own.master >= 0 {
			operands = append(operands, both("master", own.master), out("weight", own.value))
		} else {
			operands = append(operands, both("weight", own.value))
		}
		if writer.workload.Optimizer == costmodel.AdamW {
			operands = append(operands, both("mean", own.moments[0]), both("square", own.moments[1]))
		}
		writer.kernel(writer.workload.Optimizer, dims, operands...)
	})
}

// owned calls f for every parameter that the unit owns, in module order.
func (params *parameters) owned(f func(own *weight, dims []Dim)) {
	for i := range params.weights {
		own := &params.weights[i]
		if tensor := params.code.Tensors[own.value]; tensor.Tie < 0 {
			f(own, []Dim{size("rows", tensor.Rows), size("columns", tensor.Columns)})
		}
	}
}
