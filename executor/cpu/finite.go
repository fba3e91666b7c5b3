package cpu

import (
	"encoding/binary"
	"math"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cpu/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
)

// finite looks through what a run made for numbers that are none: what it hands
// on, and what it keeps. Gradients are seen by their norms, which every step
// makes of all of them.
func (worker *worker) finite(run *bind.Run, instr *program.Instr) error {
	unit := &worker.recipe.Units[run.Unit]
	worker.written = append(worker.written[:0], make([]bool, len(unit.Code.Tensors))...)
	for i := range run.Kernels {
		operands := run.Kernels[i].Operands
		for j := range operands {
			operand, tensor := &operands[j], &unit.Code.Tensors[operands[j].Tensor]
			if operand.Mode == ' ' || worker.written[operand.Tensor] || !looked(tensor) {
				continue
			}
			name, part := tensor.Name, &recipe.Operand{Tensor: operand.Tensor}
			switch tensor.Class {
			case "norms": // a number of each gradient
				name, part = unit.Code.Tensors[operands[0].Tensor].Name, operand
			case "result": // rows of logits are longer than the vocabulary
				part = operand
			default:
				worker.written[operand.Tensor] = true
			}
			matrix := worker.matrix(run.Area(part))
			if value, found := infinite(&matrix); found {
				return &executor.ValueError{
					Unit: unit.Name, Tensor: name, Op: instr.Op, MicroBatch: instr.MicroBatch, Step: worker.step.Number, Value: value,
				}
			}
		}
	}
	return nil
}

// looked reports a tensor of numbers that others read.
func looked(tensor *recipe.Tensor) bool {
	if tensor.DType != modelgraph.BF16 && tensor.DType != modelgraph.F32 {
		return false
	}
	switch tensor.Class {
	case "output", "input.gradient", "saved", "result", "norms":
		return true
	}
	return false
}

// infinite is the first number of a matrix that is NaN or infinite. Eight bytes
// at a time: a number is none if its exponent is all ones, and then one more in
// the exponent's last place carries into the sign's, which was masked away; it
// carries no further.
func infinite(matrix *kernel.Matrix) (value float32, found bool) {
	if matrix.Rows > 1 && matrix.Columns < matrix.Stride {
		row := *matrix
		row.Rows = 1
		size := matrix.DType.Bits() / 8
		for i := int64(0); i < matrix.Rows && !found; i++ {
			row.Data = matrix.Data[i*matrix.Stride*size:][:matrix.Columns*size]
			value, found = infinite(&row)
		}
		return value, found
	}
	exponents, ones, carried := uint64(0x7f800000_7f800000), uint64(0x00800000_00800000), uint64(0x80000000_80000000)
	if matrix.DType == modelgraph.BF16 {
		exponents, ones, carried = 0x7f80_7f80_7f80_7f80, 0x0080_0080_0080_0080, 0x8000_8000_8000_8000
	}
	data := matrix.Data
	for len(data) >= 8 {
		if (binary.LittleEndian.Uint64(data)&exponents+ones)&carried != 0 {
			break
		}
		data = data[8:]
	}
	size := int(matrix.DType.Bits() / 8)
	for ; len(data) >= size; data = data[size:] {
		value = math.Float32frombits(binary.LittleEndian.Uint32(append(make([]byte, 4-size, 4), data[:size]...)))
		if value-value != 0 {
			return value, true
		}
	}
	return 0, false
}
