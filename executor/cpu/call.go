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
		if run.Uses == nil || run.Uses[tensor] == nil {
			continue
		}
		if call.Uses == nil {
			call.Uses = make([][]kernel.Matrix, len(code.Operands))
		}
		for _, offset := range run.Uses[tensor] {
			use := area
			use.Offset += offset - run.Offsets[tensor]
			call.Uses[i] = append(call.Uses[i], worker.matrix(use))
		}
	}
	call.Operands = worker.operands
	return call
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
