package kernel

import (
	"encoding/binary"
	"math"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Matrix is a part of a tensor in an arena: Rows × Columns values, a row Stride
// values behind the one before.
type Matrix struct {
	DType                 modelgraph.DType // BF16, F32 or I32
	Rows, Columns, Stride int64
	// Data begins at the first value.
	Data []byte
}

// Load reads values [column, column+len(into)) of a row.
func (matrix *Matrix) Load(row, column int64, into []float32) {
	at := matrix.Data[(row*matrix.Stride+column)*matrix.size():]
	if matrix.DType == modelgraph.BF16 {
		for i := range into {
			into[i] = FromBF16(binary.LittleEndian.Uint16(at[2*i:]))
		}
		return
	}
	for i := range into {
		into[i] = math.Float32frombits(binary.LittleEndian.Uint32(at[4*i:]))
	}
}

// Store writes them, rounded to the matrix's type.
func (matrix *Matrix) Store(row, column int64, values []float32) {
	at := matrix.Data[(row*matrix.Stride+column)*matrix.size():]
	if matrix.DType == modelgraph.BF16 {
		for i, value := range values {
			binary.LittleEndian.PutUint16(at[2*i:], ToBF16(value))
		}
		return
	}
	for i, value := range values {
		binary.LittleEndian.PutUint32(at[4*i:], math.Float32bits(value))
	}
}

// Int and SetInt are of a matrix of ids.
func (matrix *Matrix) Int(row, column int64) int32 {
	return int32(binary.LittleEndian.Uint32(matrix.Data[4*(row*matrix.Stride+column):]))
}

// SetInt writes an id.
func (matrix *Matrix) SetInt(row, column int64, value int32) {
	binary.LittleEndian.PutUint32(matrix.Data[4*(row*matrix.Stride+column):], uint32(value))
}

func (matrix *Matrix) size() int64 { return matrix.DType.Bits() / 8 }

// FromBF16 is the value of sixteen bits.
func FromBF16(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

// ToBF16 rounds to the nearest, of two as near to the even one, as
// c10::detail::round_to_nearest_even (PyTorch, BFloat16.h).
func ToBF16(value float32) uint16 {
	bits := math.Float32bits(value)
	if value != value {
		return 0x7fc0
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}
