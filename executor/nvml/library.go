//go:build cuda && linux && cgo

package nvml

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "library.h"
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/devmap-dev/devmap/executor/internal/library"
)

// libraries are the places of the library to try: first by the loader's own rules, then those of
// container images and WSL.
var libraries = []string{"libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"}

var opened struct {
	sync.Mutex
	done bool
}

// Library is the open library.
type Library struct{}

// GPU is a GPU that the library knows. UUID is the same as CUDA's. Numbers of GPUs differ if
// CUDA_VISIBLE_DEVICES is set.
type GPU struct {
	UUID, Name string
	handle     unsafe.Pointer
}

// Open loads the library, and begins to use it.
func Open() (*Library, error) {
	opened.Lock()
	defer opened.Unlock()
	if !opened.done {
		if err := load(libraries); err != nil {
			return nil, err
		}
		opened.done = true
	}
	return &Library{}, check("nvmlInit", C.call_init())
}

// load fills the table of functions from the first library that has them.
func load(candidates []string) error {
	const size = 1 << 10
	reason := (*C.char)(C.malloc(size))
	defer C.free(unsafe.Pointer(reason))
	err := library.Find(candidates, func(path string) string {
		name := C.CString(path)
		defer C.free(unsafe.Pointer(name))
		if C.open_library(name, reason, size) == 0 {
			return ""
		}
		return C.GoString(reason)
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("no NVML: %w", err)
}

// Close ends the use of the library.
func (*Library) Close() error { return check("nvmlShutdown", C.call_shutdown()) }

func check(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s: NVML error %d: %s", call, code, C.GoString(C.call_error(code)))
}

// text returns what a call writes, at most 96 bytes, the longest text of NVML's.
func text(call string, write func(into *C.char, size C.uint) C.int) (string, error) {
	const size = 96
	into := (*C.char)(C.calloc(size, 1))
	defer C.free(unsafe.Pointer(into))
	if err := check(call, write(into, size)); err != nil {
		return "", err
	}
	return C.GoString(into), nil
}

// Driver returns the driver's version, such as 580.159.04.
func (*Library) Driver() (string, error) {
	return text("nvmlSystemGetDriverVersion", func(into *C.char, size C.uint) C.int { return C.call_driver(into, size) })
}

// Lacks says what this driver does not report; empty: nothing.
func (*Library) Lacks() string {
	if C.has_reserved() != 0 {
		return ""
	}
	return "this driver is older than 510: it counts its own memory on a GPU as used"
}

// GPUs returns the machine's GPUs, in NVML's order.
func (*Library) GPUs() ([]GPU, error) {
	var count C.uint
	if err := check("nvmlDeviceGetCount", C.call_count(&count)); err != nil {
		return nil, err
	}
	all := make([]GPU, count)
	for i := range all {
		if err := check("nvmlDeviceGetHandleByIndex", C.call_index(C.uint(i), &all[i].handle)); err != nil {
			return nil, err
		}
		var err error
		handle := all[i].handle
		if all[i].UUID, err = text("nvmlDeviceGetUUID", func(into *C.char, size C.uint) C.int { return C.call_uuid(handle, into, size) }); err != nil {
			return nil, err
		}
		if all[i].Name, err = text("nvmlDeviceGetName", func(into *C.char, size C.uint) C.int { return C.call_name(handle, into, size) }); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Memory returns the memory in use on the GPU now, by all processes.
func (gpu *GPU) Memory() (Memory, error) {
	var found C.Memory
	err := check("nvmlDeviceGetMemoryInfo", C.call_memory(gpu.handle, &found))
	return Memory{Total: int64(found.total), Reserved: int64(found.reserved), Used: int64(found.used), Free: int64(found.free)}, err
}

// Cut reports whether the GPU is in MIG mode: its memory is that of several.
func (gpu *GPU) Cut() (bool, error) {
	var now C.uint
	err := check("nvmlDeviceGetMigMode", C.call_mig(gpu.handle, &now))
	return now != 0, err
}

// Processes returns the processes that compute on the GPU.
func (gpu *GPU) Processes() ([]Process, error) {
	for size := C.uint(16); ; size *= 2 {
		found, count := make([]C.Process, size), size
		code := C.call_processes(gpu.handle, &count, &found[0])
		if code == C.INSUFFICIENT_SIZE && size < 1<<16 {
			continue
		}
		if err := check("nvmlDeviceGetComputeRunningProcesses", code); err != nil {
			return nil, err
		}
		all := make([]Process, count)
		for i := range all {
			all[i] = Process{ID: int(found[i].pid), Used: int64(found[i].used)} // not known: all ones
		}
		return all, nil
	}
}
