package kernel

import (
	"math"
	"unsafe"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Matrix is a part of a tensor in an arena: Rows × Columns values, with rows Stride values apart.
type Matrix struct {
	DType                 modelgraph.DType // BF16, F32 or I32
	Rows, Columns, Stride int64
	// Data begins at the first value, at an address that is a multiple of its size. Values have
	// this machine's byte order. It is the byte order of files on every machine for which Go's BLAS
	// is fast.
	Data []byte
}

// Load reads values [column, column+len(into)) of a row.
func (matrix *Matrix) Load(row, column int64, into []float32) {
	if matrix.DType == modelgraph.BF16 {
		widen(into, stretch[uint16](matrix, row, column, len(into)))
		return
	}
	copy(into, stretch[float32](matrix, row, column, len(into)))
}

// Store writes values at a row and a column, rounded to the matrix's type.
func (matrix *Matrix) Store(row, column int64, values []float32) {
	if matrix.DType == modelgraph.BF16 {
		at := stretch[uint16](matrix, row, column, len(values))
		for i, value := range values {
			at[i] = ToBF16(value)
		}
		return
	}
	copy(stretch[float32](matrix, row, column, len(values)), values)
}

// row returns a whole row. A row in fp32 is the matrix's own, which must not be changed; another
// one is converted into the buffer.
func (matrix *Matrix) row(row int64, buffer []float32) []float32 {
	if matrix.DType == modelgraph.BF16 {
		matrix.Load(row, 0, buffer[:matrix.Columns])
		return buffer[:matrix.Columns]
	}
	return stretch[float32](matrix, row, 0, int(matrix.Columns))
}

// round rounds values as if they had been stored and loaded.
func (matrix *Matrix) round(values []float32) {
	if matrix.DType == modelgraph.BF16 {
		for i, value := range values {
			values[i] = FromBF16(ToBF16(value))
		}
	}
}

// Int and SetInt are for matrices of ids.
func (matrix *Matrix) Int(row, column int64) int32 {
	return stretch[int32](matrix, row, column, 1)[0]
}

// SetInt writes an id.
func (matrix *Matrix) SetInt(row, column int64, value int32) {
	stretch[int32](matrix, row, column, 1)[0] = value
}

// stretch returns count values of a row, in place.
func stretch[T uint16 | float32 | int32](matrix *Matrix, row, column int64, count int) []T {
	var one T
	size := int64(unsafe.Sizeof(one))
	if count == 0 {
		return nil
	}
	at := (row*matrix.Stride + column) * size
	data := matrix.Data[at : at+int64(count)*size]
	return unsafe.Slice((*T)(unsafe.Pointer(&data[0])), count) //nolint:gosec // count values of data, which was cut to their bytes
}

// widen is FromBF16 for many values, four at a time: products of few rows spend their time here.
func widen(into []float32, from []uint16) {
	into = into[:len(from)]
	i := 0
	for ; i+4 <= len(from); i += 4 {
		four, wide := from[i:i+4:i+4], into[i:i+4:i+4]
		wide[0], wide[1], wide[2], wide[3] = FromBF16(four[0]), FromBF16(four[1]), FromBF16(four[2]), FromBF16(four[3])
	}
	for ; i < len(from); i++ {
		into[i] = FromBF16(from[i])
	}
}

// FromBF16 returns the value of sixteen bits.
func FromBF16(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

// ToBF16 rounds to the nearest value, and ties to even, as c10::detail::round_to_nearest_even
// (PyTorch, BFloat16.h).
func ToBF16(value float32) uint16 {
	bits := math.Float32bits(value)
	if value != value {
		return 0x7fc0
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
