//go:build cuda && linux && cgo

package nvml

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

// Layouts and numbers of the NVML API reference.
typedef struct { unsigned long long total, free, used; } Memory1;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } Process;
enum { NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7, FUNCTION_NOT_FOUND = 13 };

typedef struct {
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*errorString)(int);
	int (*driverVersion)(char *, unsigned);
	int (*count)(unsigned *);
	int (*byIndex)(unsigned, void **);
	int (*uuid)(void *, char *, unsigned);
	int (*name)(void *, char *, unsigned);
	int (*memory1)(void *, Memory1 *);
	// What drivers have had for a while only: null where this one has not.
	int (*memory)(void *, Memory *);
	int (*processes)(void *, unsigned *, Process *);
	int (*processes2)(void *, unsigned *, Process *);
	int (*mig)(void *, unsigned *, unsigned *);
} Functions;

static Functions functions;

// open_library fills the table. It writes why it could not, or what is missing.
static int open_library(const char *path, char *text, int size) {
	static const struct { const char *name; void **into; int later; } all[] = {
		{"nvmlInit_v2", (void **)&functions.init}, {"nvmlShutdown", (void **)&functions.shutdown},
		{"nvmlErrorString", (void **)&functions.errorString}, {"nvmlSystemGetDriverVersion", (void **)&functions.driverVersion},
		{"nvmlDeviceGetCount_v2", (void **)&functions.count}, {"nvmlDeviceGetHandleByIndex_v2", (void **)&functions.byIndex},
		{"nvmlDeviceGetUUID", (void **)&functions.uuid}, {"nvmlDeviceGetName", (void **)&functions.name},
		{"nvmlDeviceGetMemoryInfo", (void **)&functions.memory1},
		{"nvmlDeviceGetMemoryInfo_v2", (void **)&functions.memory, 1}, {"nvmlDeviceGetComputeRunningProcesses_v3", (void **)&functions.processes, 1},
		{"nvmlDeviceGetComputeRunningProcesses_v2", (void **)&functions.processes2, 1}, {"nvmlDeviceGetMigMode", (void **)&functions.mig, 1},
	};
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(text, size, "%s", dlerror());
		return 1;
	}
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
		if (!(*all[i].into = dlsym(library, all[i].name)) && !all[i].later) {
			snprintf(text, size, "%s has no %s: it is no NVML", path, all[i].name);
			dlclose(library);
			return 1;
		}
	}
	return 0;
}

static int call_init(void) { return functions.init(); }
static int call_shutdown(void) { return functions.shutdown(); }
static const char *call_error(int code) { return functions.errorString(code); }
static int call_driver(char *text, unsigned size) { return functions.driverVersion(text, size); }
static int call_count(unsigned *count) { return functions.count(count); }
static int call_index(unsigned index, void **device) { return functions.byIndex(index, device); }
static int call_uuid(void *device, char *text, unsigned size) { return functions.uuid(device, text, size); }
static int call_name(void *device, char *text, unsigned size) { return functions.name(device, text, size); }
static int has_reserved(void) { return functions.memory != 0; }
static int call_memory(void *device, Memory *memory) {
	if (functions.memory) {
		memory->version = sizeof *memory | 2u << 24;
		return functions.memory(device, memory);
	}
	Memory1 found = {0};
	int code = functions.memory1(device, &found);
	*memory = (Memory){0, found.total, 0, found.free, found.used};
	return code;
}
// Both versions write the same.
static int call_processes(void *device, unsigned *count, Process *all) {
	if (functions.processes) return functions.processes(device, count, all);
	return functions.processes2 ? functions.processes2(device, count, all) : FUNCTION_NOT_FOUND;
}
// A driver that has no such function has no GPU that is cut.
static int call_mig(void *device, unsigned *now) {
	unsigned pending = 0;
	int code = functions.mig ? functions.mig(device, now, &pending) : NOT_SUPPORTED;
	return code == NOT_SUPPORTED ? 0 : code;
}
*/
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/devmap-dev/devmap/executor/internal/library"
)

// libraries are where the library is looked for: by the loader's own rules, then
// where images for containers and WSL keep it.
var libraries = []string{"libnvidia-ml.so.1", "/usr/local/nvidia/lib64/libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"}

var opened struct {
	sync.Mutex
	done bool
}

// Library is the open library.
type Library struct{}

// GPU is one that the library knows. UUID is as CUDA's: numbers of GPUs are not,
// where CUDA_VISIBLE_DEVICES is set.
type GPU struct {
	UUID, Name string
	handle     unsafe.Pointer
}

// Open finds the library and begins to use it.
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

// text is what a call writes, which has room for 96 bytes, the longest of NVML's.
func text(call string, write func(into *C.char, size C.uint) C.int) (string, error) {
	const size = 96
	into := (*C.char)(C.calloc(size, 1))
	defer C.free(unsafe.Pointer(into))
	if err := check(call, write(into, size)); err != nil {
		return "", err
	}
	return C.GoString(into), nil
}

// Driver is the driver's version: 580.159.04.
func (*Library) Driver() (string, error) {
	return text("nvmlSystemGetDriverVersion", func(into *C.char, size C.uint) C.int { return C.call_driver(into, size) })
}

// Lacks says what this driver does not tell; empty: nothing.
func (*Library) Lacks() string {
	if C.has_reserved() != 0 {
		return ""
	}
	return "this driver is older than 510: what it keeps of a GPU itself is told as used"
}

// GPUs are those of the machine, in NVML's order.
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

// Memory is what the GPU holds now, of all processes.
func (gpu *GPU) Memory() (Memory, error) {
	var found C.Memory
	err := check("nvmlDeviceGetMemoryInfo", C.call_memory(gpu.handle, &found))
	return Memory{Total: int64(found.total), Reserved: int64(found.reserved), Used: int64(found.used), Free: int64(found.free)}, err
}

// Cut reports a GPU in MIG mode: its memory is that of several.
func (gpu *GPU) Cut() (bool, error) {
	var now C.uint
	err := check("nvmlDeviceGetMigMode", C.call_mig(gpu.handle, &now))
	return now != 0, err
}

// Processes are those that compute on the GPU.
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
			all[i] = Process{ID: int(found[i].pid), Used: int64(found[i].used)} // not told: all ones
		}
		return all, nil
	}
}
