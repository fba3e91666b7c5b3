//go:build cuda && linux && cgo && amd64

package driver

/*
#include <string.h>
#include <cuda.h>

// The driver writes a map at a multiple of 64 bytes, and Go's memory may begin elsewhere.
static CUresult describe(void *to, CUdeviceptr at, const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box) {
	CUtensorMap map;
	const cuuint32_t steps[] = {1, 1, 1, 1};
	CUresult code = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, (void *)(uintptr_t)at, sizes, strides, box, steps,
	                                       CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	if (code == CUDA_SUCCESS) memcpy(to, &map, sizeof map);
	return code;
}
*/
import "C"

import "unsafe"

// Tiles is a matrix in bf16 as Hopper's copy engine reads it. It has a row for each of Rows tokens of
// Sequences sequences, with Heads times Width values. Stride is in values. A tile is 64 values of Box
// rows of a head, with zeros after the last row of a sequence.
type Tiles struct {
	At                                         Address
	Width, Heads, Rows, Sequences, Stride, Box int64
}

// ReserveTiles adds space for a description, and returns its place for [Arguments.Tiles]. The first
// argument of a launch has to be one, or none.
func (arguments *Arguments) ReserveTiles() int {
	arguments.align(64)
	arguments.data = append(arguments.data, make([]byte, unsafe.Sizeof(C.CUtensorMap{}))...)
	return len(arguments.data) - int(unsafe.Sizeof(C.CUtensorMap{}))
}

// Tiles writes the description of tiles to a place. Addresses and strides have to be multiples of 16
// bytes: the driver refuses others.
func (arguments *Arguments) Tiles(place int, tiles *Tiles) error {
	sizes := [4]C.cuuint64_t{C.cuuint64_t(tiles.Width), C.cuuint64_t(tiles.Rows), C.cuuint64_t(tiles.Heads), C.cuuint64_t(tiles.Sequences)}
	strides := [3]C.cuuint64_t{C.cuuint64_t(2 * tiles.Stride), C.cuuint64_t(2 * tiles.Width), C.cuuint64_t(2 * tiles.Stride * tiles.Rows)}
	box := [4]C.cuuint32_t{64, C.cuuint32_t(tiles.Box), 1, 1}
	return result("cuTensorMapEncodeTiled", C.describe(unsafe.Pointer(&arguments.data[place]), C.CUdeviceptr(tiles.At), &sizes[0], &strides[0], &box[0]))
}
