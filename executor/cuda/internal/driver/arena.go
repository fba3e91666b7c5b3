//go:build cuda && linux && cgo && amd64

package driver

/*
#include <cuda.h>

static CUmemAllocationProp of_device(int device) {
	CUmemAllocationProp properties = {0};
	properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	properties.location.id = device;
	return properties;
}

static CUresult granule_of(size_t *bytes, int device) {
	CUmemAllocationProp properties = of_device(device);
	return cuMemGetAllocationGranularity(bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
}

static CUresult create_on(CUmemGenericAllocationHandle *handle, size_t bytes, int device) {
	CUmemAllocationProp properties = of_device(device);
	return cuMemCreate(handle, bytes, &properties, 0);
}

static CUresult let(CUdeviceptr address, size_t bytes, int device) {
	CUmemAccessDesc access = {0};
	access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location.id = device;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return cuMemSetAccess(address, bytes, &access, 1);
}
*/
import "C"

import (
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/executor/internal/schedule"
)

// Address is the address of a byte. All GPUs and pinned memory share one address space.
type Address = schedule.Address

// Arena is memory of a GPU, mapped at its own addresses in whole granules. It is mapped rather than
// allocated, because an allocator rounds sizes up and keeps memory that is freed.
type Arena struct {
	Address Address
	Bytes   int64 // in whole granules

	device *Device
	peers  []*Device
	handle C.CUmemGenericAllocationHandle
	stage  int // how much of it exists
}

// AccessError reports a GPU that should reach another one, but gets no access to its memory.
type AccessError struct {
	Peer *Device
	Err  error
}

func (err *AccessError) Error() string {
	return fmt.Sprintf("GPU %d (%s) gets no access: %v", err.Peer.Ordinal, err.Peer.Name, err.Err)
}

func (err *AccessError) Unwrap() error { return err.Err }

// The stages of an arena.
const (
	reserved = iota + 1
	created
	mapped
)

// ranges is the ledger's kind of addresses without memory.
const ranges = "ranges of addresses"

// Granule returns the unit in which the GPU's memory is mapped: 2 MiB on all known GPUs.
func (device *Device) Granule() (int64, error) {
	var bytes C.size_t
	err := result("cuMemGetAllocationGranularity", C.granule_of(&bytes, C.int(device.device)))
	return int64(bytes), err
}

// Map maps bytes of the GPU's memory, a multiple of its granule, for its own kernels and copies and
// for those of the peers. If any part fails, nothing remains allocated.
func (device *Device) Map(bytes int64, peers ...*Device) (*Arena, error) {
	arena := &Arena{Bytes: bytes, device: device, peers: peers}
	var address C.CUdeviceptr
	if err := result("cuMemAddressReserve", C.cuMemAddressReserve(&address, C.size_t(bytes), 0, 0, 0)); err != nil {
		return nil, err
	}
	arena.Address, arena.stage = Address(address), reserved
	enter(ranges, 1, bytes)
	if err := arena.Remap(); err != nil {
		return nil, errors.Join(err, arena.Release())
	}
	return arena, nil
}

// Mapped reports whether there is memory at the arena's addresses.
func (arena *Arena) Mapped() bool { return arena.stage == mapped }

// Remap gives an arena without memory ([Arena.Unmap]) new memory at the same addresses, for the
// same GPUs. The old contents are lost. If any part fails, the arena is without memory as before.
func (arena *Arena) Remap() error {
	if arena.stage != reserved {
		return fmt.Errorf("an arena of %d bytes is mapped already, or is no more", arena.Bytes)
	}
	if err := arena.fill(); err != nil {
		return errors.Join(err, arena.Unmap())
	}
	return nil
}

// fill gets memory for the arena's addresses.
func (arena *Arena) fill() error {
	address, size := C.CUdeviceptr(arena.Address), C.size_t(arena.Bytes)
	if err := result("cuMemCreate", C.create_on(&arena.handle, size, C.int(arena.device.device))); err != nil {
		return err
	}
	arena.stage = created
	enter(ranges, -1, -arena.Bytes)
	enter("arenas", 1, arena.Bytes)
	if err := result("cuMemMap", C.cuMemMap(address, size, 0, arena.handle, 0)); err != nil {
		return err
	}
	arena.stage = mapped
	if err := result("cuMemSetAccess", C.let(address, size, C.int(arena.device.device))); err != nil {
		return err
	}
	for _, peer := range arena.peers {
		if err := result("cuMemSetAccess", C.let(address, size, C.int(peer.device))); err != nil {
			return &AccessError{Peer: peer, Err: err}
		}
	}
	return nil
}

// Unmap releases the memory and keeps the addresses: an access is a fault until [Arena.Remap]. No
// copy or kernel may be running on the arena. After an error Unmap may be called again, and
// continues with the part that failed.
func (arena *Arena) Unmap() error {
	if arena.stage == mapped {
		if err := result("cuMemUnmap", C.cuMemUnmap(C.CUdeviceptr(arena.Address), C.size_t(arena.Bytes))); err != nil {
			return err
		}
		arena.stage = created
	}
	if arena.stage == created {
		if err := result("cuMemRelease", C.cuMemRelease(arena.handle)); err != nil {
			return err
		}
		arena.stage = reserved
		enter("arenas", -1, -arena.Bytes)
		enter(ranges, 1, arena.Bytes)
	}
	return nil
}

// Release releases the memory and the addresses of the arena.
func (arena *Arena) Release() error {
	if err := arena.Unmap(); err != nil || arena.stage != reserved {
		return err
	}
	if err := result("cuMemAddressFree", C.cuMemAddressFree(C.CUdeviceptr(arena.Address), C.size_t(arena.Bytes))); err != nil {
		return err
	}
	arena.stage = 0
	enter(ranges, -1, -arena.Bytes)
	return nil
}
