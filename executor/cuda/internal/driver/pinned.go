//go:build cuda && linux && cgo && amd64

package driver

/*
#include <cuda.h>
*/
import "C"

import (
	"errors"
	"runtime"
	"sync"
	"syscall"
	"unsafe"
)

// Pinned is memory of the host whose pages stay where they are, so that a GPU's
// copy engine takes it as it is. It is C's: asynchronous copies must not be given
// Go's.
type Pinned struct {
	Data    []byte
	mapping []byte // that Data lies in, where the system was asked for it
}

// Pin gets page-locked memory, of use in every context. A context must be bound.
func Pin(bytes int64) (*Pinned, error) {
	var data unsafe.Pointer
	if err := result("cuMemHostAlloc", C.cuMemHostAlloc(&data, C.size_t(bytes), C.CU_MEMHOSTALLOC_PORTABLE)); err != nil {
		return nil, err
	}
	enter("pinned stretches", 1, bytes)
	return &Pinned{Data: unsafe.Slice((*byte)(data), bytes)}, nil
}

// large is a page that the system has besides those of 4 KiB.
const large = 2 << 20

// PinLarge gets page-locked memory of the system's, in large pages where it gives
// some, which all processors fetch at once: a tenth of the time that Pin takes, whose
// pages one processor clears. Only the host may go by its addresses. Where the driver
// does not take it, it is Pin's.
func PinLarge(bytes int64) (*Pinned, error) {
	mapping, err := syscall.Mmap(-1, 0, int(bytes+large), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		return Pin(bytes)
	}
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(mapping))) % large
	data := mapping[skip : skip+uintptr(bytes) : skip+uintptr(bytes)]
	fetch(data)
	err = result("cuMemHostRegister", C.cuMemHostRegister(unsafe.Pointer(unsafe.SliceData(data)), C.size_t(bytes), C.CU_MEMHOSTREGISTER_PORTABLE))
	if err != nil {
		if err := syscall.Munmap(mapping); err != nil {
			return nil, err
		}
		return Pin(bytes)
	}
	enter("pinned stretches", 1, bytes)
	return &Pinned{data, mapping}, nil
}

// fetch has the system find pages for a mapping.
func fetch(data []byte) {
	_ = syscall.Madvise(data, syscall.MADV_HUGEPAGE) // a system without large pages has small ones
	var hands sync.WaitGroup
	share := max(large, len(data)/runtime.GOMAXPROCS(0)/large*large)
	for begin := 0; begin < len(data); begin += share {
		hands.Go(func() {
			for at := begin; at < min(begin+share, len(data)); at += syscall.Getpagesize() {
				data[at] = 0
			}
		})
	}
	hands.Wait()
}

// Free gives it back.
func (pinned *Pinned) Free() error {
	if pinned == nil || pinned.Data == nil {
		return nil
	}
	bytes, data := int64(len(pinned.Data)), unsafe.Pointer(unsafe.SliceData(pinned.Data))
	var err error
	if pinned.mapping != nil {
		err = errors.Join(result("cuMemHostUnregister", C.cuMemHostUnregister(data)), syscall.Munmap(pinned.mapping))
	} else {
		err = result("cuMemFreeHost", C.cuMemFreeHost(data))
	}
	if err != nil {
		return err
	}
	pinned.Data, pinned.mapping = nil, nil
	enter("pinned stretches", -1, -bytes)
	return nil
}

// Address is where the GPUs find what Pin got: at the host's own address.
func (pinned *Pinned) Address() Address {
	return Address(uintptr(unsafe.Pointer(unsafe.SliceData(pinned.Data))))
}
