//go:build cuda && linux && cgo && amd64

package driver

/*
#include <cuda.h>
*/
import "C"

import "unsafe"

// Pinned is memory of the host whose pages stay where they are, so that a GPU's
// copy engine takes it as it is. It is C's: asynchronous copies must not be given
// Go's.
type Pinned struct{ Data []byte }

// Pin gets page-locked memory, of use in every context. A context must be bound.
func Pin(bytes int64) (*Pinned, error) {
	var data unsafe.Pointer
	if err := result("cuMemHostAlloc", C.cuMemHostAlloc(&data, C.size_t(bytes), C.CU_MEMHOSTALLOC_PORTABLE)); err != nil {
		return nil, err
	}
	enter("pinned stretches", 1, bytes)
	return &Pinned{unsafe.Slice((*byte)(data), bytes)}, nil
}

// Free gives it back.
func (pinned *Pinned) Free() error {
	if pinned == nil || pinned.Data == nil {
		return nil
	}
	bytes := int64(len(pinned.Data))
	if err := result("cuMemFreeHost", C.cuMemFreeHost(unsafe.Pointer(unsafe.SliceData(pinned.Data)))); err != nil {
		return err
	}
	pinned.Data = nil
	enter("pinned stretches", -1, -bytes)
	return nil
}

// Address is where the GPUs find pinned memory: at the host's own address.
func (pinned *Pinned) Address() Address {
	return Address(uintptr(unsafe.Pointer(unsafe.SliceData(pinned.Data))))
}
