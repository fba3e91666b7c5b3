package cpu

import (
	"encoding/binary"
	"math"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
)

// finite looks for NaN and infinities in what a run made, once the last of its
// kernels has run.
func (device *device) finite(run *bind.Run, instr *program.Instr, step int64) error {
	for _, made := range run.Made() {
		if value, found := device.infinite(made.Area); found {
			return &executor.ValueError{
				Unit: device.recipe.Units[run.Unit].Name, Tensor: made.Name, Op: instr.Op, MicroBatch: instr.MicroBatch, Step: step, Value: value,
			}
		}
	}
	return nil
}

// infinite returns the first number of an area that is NaN or infinite.
func (device *device) infinite(area bind.Area) (value float32, found bool) {
	matrix := device.matrix(area)
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

// infinite returns the first number that is NaN or infinite. The exponent of such a number is all
// ones. One more in its last place then carries into the sign bit, which was masked away, and no
// further. So the loop checks eight bytes at a time.
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
