package cpu

import (
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/cpu/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// call is a kernel with its matrices, good until the next one.
func (worker *worker) call(run *bind.Run, code *recipe.Kernel) *kernel.Call {
	call := &kernel.Call{Kernel: code, Past: run.Past, Begins: run.Begins, Step: worker.step.Number, Optimizer: &worker.step.Optimizer}
	worker.operands = worker.operands[:0]
	for i := range code.Operands {
		tensor, area := code.Operands[i].Tensor, run.Area(&code.Operands[i])
		worker.operands = append(worker.operands, worker.matrix(area))
		if len(run.Uses) > 0 && len(run.Uses[tensor]) > 0 {
			if call.Uses == nil {
				call.Uses = make([][]kernel.Matrix, len(code.Operands))
			}
			call.Uses[i] = worker.uses(area, run.Offsets[tensor], run.Uses[tensor])
		}
	}
	call.Operands = worker.operands
	return call
}

// uses are the same area of every use's gradient.
func (worker *worker) uses(area bind.Area, own int64, offsets []int64) (all []kernel.Matrix) {
	for _, offset := range offsets {
		use := area
		use.Offset += offset - own
		all = append(all, worker.matrix(use))
	}
	return all
}

// matrix is an area of the device's arena, and no byte behind it.
func (worker *worker) matrix(area bind.Area) kernel.Matrix {
	matrix := kernel.Matrix{DType: area.DType, Rows: area.Rows, Columns: area.Columns, Stride: area.Stride}
	if area.Rows > 0 {
		end := area.Offset + ((area.Rows-1)*area.Stride+area.Columns)*(area.DType.Bits()/8)
		matrix.Data = worker.arena[area.Offset:end:end]
	}
	return matrix
}
