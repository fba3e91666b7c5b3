//go:build cuda && linux && cgo && amd64

package driver

/*
#cgo LDFLAGS: -L${SRCDIR}/lib -ldl
#include <stdlib.h>
#include "load.h"
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/devmap-dev/devmap/executor/internal/library"
)

// libraries are the places of the driver to try: first by the loader's own rules, then those of
// container images and WSL.
var libraries = []string{"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}

var opened struct {
	sync.Mutex
	library string
}

// Open loads the driver and initializes it, once in a process. An error names the missing library,
// the entry point that the driver is too old for, or the driver's own error.
func Open() error { return open(libraries) }

func open(candidates []string) error {
	opened.Lock()
	defer opened.Unlock()
	if opened.library != "" {
		return nil
	}
	var fault error // of a library that is there
	err := library.Find(candidates, func(path string) (reason string) {
		reason, fault = load(path)
		if reason != "" || fault != nil {
			return reason
		}
		if fault = check("cuInit", C.driver_init()); fault != nil {
			fault = fmt.Errorf("%s: %w", path, fault)
			return ""
		}
		opened.library = path
		return ""
	})
	switch {
	case fault != nil:
		return fault
	case err != nil:
		return fmt.Errorf("no CUDA driver: %w", err)
	}
	return nil
}

// load fills the table from a library; text says why there is none at path.
func load(path string) (text string, err error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	list := (*[1 << 10]*C.char)(C.calloc(C.size_t(len(needed)+1), C.size_t(unsafe.Sizeof(name))))
	defer C.free(unsafe.Pointer(list))
	for i := range needed {
		list[i] = C.CString(needed[i])
		defer C.free(unsafe.Pointer(list[i])) //nolint:gocritic // the library is opened once, with all names
	}
	const size = 1 << 10
	reason := (*C.char)(C.malloc(size))
	defer C.free(unsafe.Pointer(reason))
	switch C.driver_open(name, &list[0], reason, size) {
	case C.DRIVER_NO_LIBRARY:
		return C.GoString(reason), nil
	case C.DRIVER_NO_SYMBOL:
		return "", fmt.Errorf("%s: the driver has no %s: it is older than CUDA 11.8's (520)", path, C.GoString(reason))
	}
	return "", nil
}

// needed are the entry points that the executor requires. Others that cu refers to may be missing:
// they return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND.
var needed = []string{
	"cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString",
	"cuDeviceGet", "cuDeviceGetCount", "cuDeviceGetName", "cuDeviceGetUuid", "cuDeviceGetAttribute", "cuDeviceTotalMem_v2", "cuDeviceCanAccessPeer",
	"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuCtxSetCurrent", "cuCtxSynchronize",
	"cuMemGetInfo_v2", "cuMemHostAlloc", "cuMemFreeHost", "cuMemHostRegister_v2", "cuMemHostUnregister",
	"cuMemAddressReserve", "cuMemAddressFree", "cuMemCreate", "cuMemRelease", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemGetAllocationGranularity",
	"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async",
	"cuStreamCreate", "cuStreamDestroy_v2", "cuStreamSynchronize", "cuStreamWaitEvent",
	"cuEventCreate", "cuEventDestroy_v2", "cuEventRecord", "cuEventQuery", "cuEventElapsedTime",
	"cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction", "cuModuleGetGlobal_v2", "cuFuncSetAttribute", "cuLaunchKernel", "cuLaunchCooperativeKernel",
	"cuMemsetD32Async", "cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphUpload", "cuGraphLaunch", "cuGraphExecDestroy", "cuGraphDestroy",
}

// Library returns the path of the open driver, empty before [Open].
func Library() string { return opened.library }

// Missing returns the entry points that the open driver lacks, of all that the program refers to.
func Missing() (names []string) {
	for i := range C.driver_count() {
		if C.driver_present(i) == 0 {
			names = append(names, C.GoString(C.driver_name(i)))
		}
	}
	return names
}
