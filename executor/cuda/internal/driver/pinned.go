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

	"github.com/devmap-dev/devmap/costmodel"
)

// Pinned is host memory whose pages do not move, so that a GPU's copy engine reads it directly. It
// is not Go's memory, which asynchronous copies must not use.
type Pinned struct {
	Data    []byte
	mapping []byte // the system's memory that has Data; nil: the driver's
	kind    string // in the ledger
}

// Kinds of pinned memory in the ledger.
const (
	stretches = "pinned stretches"
	copies    = "kept copies"
)

// Pin allocates pinned memory for use in every context. A context must be bound.
func Pin(bytes int64) (*Pinned, error) { return pin(stretches, bytes) }

func pin(kind string, bytes int64) (*Pinned, error) {
	var data unsafe.Pointer
	if err := result("cuMemHostAlloc", C.cuMemHostAlloc(&data, C.size_t(bytes), C.CU_MEMHOSTALLOC_PORTABLE)); err != nil {
		return nil, err
	}
	enter(kind, 1, bytes)
	return &Pinned{Data: unsafe.Slice((*byte)(data), bytes), kind: kind}, nil
}

// large is the size of a large page; other pages have 4 KiB.
const large = 2 << 20

// PinLarge pins memory of the system, in large pages if there are some. All processors fetch the
// pages at once, in a tenth of Pin's time: one processor clears Pin's pages. Only the host may use
// its addresses. If the driver does not accept the memory, it is Pin's.
func PinLarge(bytes int64) (*Pinned, error) { return pinLarge(stretches, bytes) }

// PinCopy is PinLarge for memory that outlasts a turn ([Tables]).
func PinCopy(bytes int64) (*Pinned, error) { return pinLarge(copies, bytes) }

// Tables returns the bytes that the saved copies take in the page table of each GPU with a context
// of the process ([costmodel.PageTables]). Pinned memory has an address in all contexts (CUDA driver
// API, "Unified Addressing").
func Tables() int64 {
	ledger.Lock()
	defer ledger.Unlock()
	return costmodel.PageTables(ledger.unreleased[copies].bytes)
}

func pinLarge(kind string, bytes int64) (*Pinned, error) {
	mapping, err := syscall.Mmap(-1, 0, int(bytes+large), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		return pin(kind, bytes)
	}
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(mapping))) % large
	data := mapping[skip : skip+uintptr(bytes) : skip+uintptr(bytes)]
	fetch(data)
	err = result("cuMemHostRegister", C.cuMemHostRegister(unsafe.Pointer(unsafe.SliceData(data)), C.size_t(bytes), C.CU_MEMHOSTREGISTER_PORTABLE))
	if err != nil {
		if err := syscall.Munmap(mapping); err != nil {
			return nil, err
		}
		return pin(kind, bytes)
	}
	enter(kind, 1, bytes)
	return &Pinned{data, mapping, kind}, nil
}

// fetch makes the system find pages for a mapping.
func fetch(data []byte) {
	_ = syscall.Madvise(data, syscall.MADV_HUGEPAGE) // a system without large pages has small ones
	var workers sync.WaitGroup
	share := max(large, len(data)/runtime.GOMAXPROCS(0)/large*large)
	for begin := 0; begin < len(data); begin += share {
		workers.Go(func() {
			for at := begin; at < min(begin+share, len(data)); at += syscall.Getpagesize() {
				data[at] = 0
			}
		})
	}
	workers.Wait()
}

// Free releases the memory.
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
	enter(pinned.kind, -1, -bytes)
	return nil
}

// Bytes returns the memory.
func (pinned *Pinned) Bytes() []byte { return pinned.Data }

// Address returns the GPUs' address of memory from Pin, which is the host's own.
func (pinned *Pinned) Address() Address {
	return Address(uintptr(unsafe.Pointer(unsafe.SliceData(pinned.Data))))
}
