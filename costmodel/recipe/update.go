package recipe

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// update writes the optimizer's kernels: the squared norm of every gradient,
// for clipping, and the step of every parameter that the unit owns.
func (w *writer) update() {
	if w.regions.Tensors == 0 {
		return
	}
	norms := w.add(Tensor{Name: "norms", Class: Norms, DType: modelgraph.F32, Rows: w.regions.Tensors, Columns: 1, Tie: -1})
	total := w.add(Tensor{Name: "total", Class: Total, DType: modelgraph.F32, Rows: 1, Columns: 1, Tie: -1})
	w.pass, w.routine = Squares, &w.code.Norms
	row := int64(0)
	w.owned(func(own *weight, dims []Dim) {
		w.kernel("square", dims, in("x", own.gradient), w.rowsOf(out("y", norms), row, 1))
		row++
	})
	w.pass, w.routine = Step, &w.code.Step
	w.owned(func(own *weight, dims []Dim) {
		operands := []Operand{in("gradient", own.gradient), in("total", total)}
		if own.master >= 0 {
			operands = append(operands, both("master", own.master), out("weight", own.value))
		} else {
			operands = append(operands, both("weight", own.value))
		}
		if w.workload.Optimizer == costmodel.AdamW {
			operands = append(operands, both("mean", own.moments[0]), both("square", own.moments[1]))
		}
		w.kernel(w.workload.Optimizer, dims, operands...)
	})
}

// owned calls f for every parameter that the unit owns, in module order.
func (w *writer) owned(f func(own *weight, dims []Dim)) {
	for i := range w.weights {
		own := &w.weights[i]
		if tensor := w.code.Tensors[own.value]; tensor.Tie < 0 {
			f(own, []Dim{size("rows", tensor.Rows), size("columns", tensor.Columns)})
		}
	}
}
