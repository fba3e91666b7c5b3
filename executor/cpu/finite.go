package cpu

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
)

// finite looks through what a run made for numbers that are none: what it hands
// on, and what it keeps, weights that were stepped too: they may be saved next.
// Gradients are seen by their norms, which every step makes of all of them. It
// looks where kernels wrote, as rows may be wider, and there once, when the last
// has.
func (worker *worker) finite(run *bind.Run, instr *program.Instr) error {
	unit := &worker.recipe.Units[run.Unit]
	worker.seen = worker.seen[:0]
	for i := range run.Kernels {
		operands := run.Kernels[i].Operands
		for j := range operands {
			tensor := &unit.Code.Tensors[operands[j].Tensor]
			if operands[j].Mode == ' ' || !looked(tensor) {
				continue
			}
			area := run.Area(&operands[j])
			if slices.Contains(worker.seen, area) {
				continue
			}
			worker.seen = append(worker.seen, area)
			value, found := worker.infinite(area)
			if !found {
				continue
			}
			if tensor.Class == "norms" { // a number of each gradient
				tensor = &unit.Code.Tensors[operands[0].Tensor]
			}
			return &executor.ValueError{
				Unit: unit.Name, Tensor: tensor.Name, Op: instr.Op, MicroBatch: instr.MicroBatch, Step: worker.step.Number, Value: value,
			}
		}
	}
	return nil
}

// infinite is the first number of an area that is NaN or infinite.
func (worker *worker) infinite(area bind.Area) (value float32, found bool) {
	matrix := worker.matrix(area)
	if matrix.Columns == matrix.Stride {
		return infinite(matrix.DType, matrix.Data)
	}
	size := matrix.DType.Bits() / 8
	for row := int64(0); row < matrix.Rows && !found; row++ {
		begin := row * matrix.Stride * size
		value, found = infinite(matrix.DType, matrix.Data[begin:begin+matrix.Columns*size])
	}
	return value, found
}

// looked reports a tensor of numbers that others read.
func looked(tensor *recipe.Tensor) bool {
	if tensor.DType != modelgraph.BF16 && tensor.DType != modelgraph.F32 {
		return false
	}
	switch tensor.Class {
	case "output", "input.gradient", "saved", "result", "norms", "weight", "master", "state":
		return true
	}
	return false
}

// infinite is the first of numbers that is NaN or infinite. Eight bytes at a
// time: a number is none if its exponent is all ones, and then one more in
// the exponent's last place carries into the sign's, which was masked away; it
// carries no further.
func infinite(dtype modelgraph.DType, data []byte) (value float32, found bool) {
	exponents, ones, carried := uint64(0x7f800000_7f800000), uint64(0x00800000_00800000), uint64(0x80000000_80000000)
	if dtype == modelgraph.BF16 {
		exponents, ones, carried = 0x7f80_7f80_7f80_7f80, 0x0080_0080_0080_0080, 0x8000_8000_8000_8000
	}
	for len(data) >= 8 {
		if (binary.LittleEndian.Uint64(data)&exponents+ones)&carried != 0 {
			break
		}
		data = data[8:]
	}
	size := int(dtype.Bits() / 8)
	for ; len(data) >= size; data = data[size:] {
		value = math.Float32frombits(binary.LittleEndian.Uint32(append(make([]byte, 4-size, 4), data[:size]...)))
		if value-value != 0 {
			return value, true
		}
	}
	return 0, false
}
