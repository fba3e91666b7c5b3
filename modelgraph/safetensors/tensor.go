package safetensors

import (
	"math/bits"

	"github.com/devmap-dev/devmap/modelgraph"
)

// A Tensor is one stored tensor and the place of its data.
type Tensor struct {
	Name  string
	DType modelgraph.DType
	Shape []int64 // empty for a scalar

	// Begin and End limit the data as byte offsets in the FILE: the header and its 8-byte length
	// count, unlike in data_offsets.
	Begin, End int64

	File int // index in Checkpoint.Files
}

// Bytes returns the length of the data in the file.
func (tensor Tensor) Bytes() int64 { return tensor.End - tensor.Begin }

// dataBytes returns the size for dtype and shape, or why there is none. The arithmetic is that of
// tensor.rs, Metadata::validate, on u64.
func dataBytes(dtype modelgraph.DType, shape []int64) (size uint64, fault string) {
	count := uint64(1)
	for _, dim := range shape {
		hi, lo := bits.Mul64(count, uint64(dim))
		if hi != 0 {
			return 0, "element count overflows"
		}
		count = lo
	}
	hi, nbits := bits.Mul64(count, uint64(dtype.Bits()))
	if hi != 0 {
		return 0, "size in bits overflows"
	}
	if nbits%8 != 0 {
		return 0, "size is not a whole number of bytes"
	}
	return nbits / 8, ""
}
