//go:build cuda && linux && cgo && amd64

package driver

/*
#cgo CFLAGS: -I${SRCDIR}/include
#include <cuda.h>
*/
import "C"

import (
	"fmt"
	"reflect"

	"github.com/devmap-dev/devmap/executor"
)

// Error is an error that the driver returned.
type Error struct {
	Call string
	Code int // CUresult
}

// OutOfMemory is CUDA_ERROR_OUT_OF_MEMORY, Unavailable CUDA_ERROR_DEVICE_UNAVAILABLE: a
// GPU that another process uses exclusively.
const (
	OutOfMemory = int(C.CUDA_ERROR_OUT_OF_MEMORY)
	Unavailable = int(C.CUDA_ERROR_DEVICE_UNAVAILABLE)
)

func (err *Error) Error() string {
	var name, text *C.char
	C.cuGetErrorName(C.CUresult(err.Code), &name)
	C.cuGetErrorString(C.CUresult(err.Code), &text)
	if name == nil || text == nil {
		return fmt.Sprintf("%s: CUDA error %d", err.Call, err.Code)
	}
	return fmt.Sprintf("%s: %s (%d): %s", err.Call, C.GoString(name), err.Code, C.GoString(text))
}

// Is reports whether target is [executor.ErrMemory] and the GPU is out of memory.
func (err *Error) Is(target error) bool {
	return target == executor.ErrMemory && err.Code == OutOfMemory
}

// dead are the errors after which a context fails every call. The reference manual says that "the
// process must be terminated and relaunched", or that the GPU's memory or its links are beyond
// repair.
var dead = map[int]bool{
	C.CUDA_ERROR_ECC_UNCORRECTABLE: true, C.CUDA_ERROR_NVLINK_UNCORRECTABLE: true, C.CUDA_ERROR_CONTAINED: true,
	C.CUDA_ERROR_ILLEGAL_ADDRESS: true, C.CUDA_ERROR_LAUNCH_TIMEOUT: true, C.CUDA_ERROR_CONTEXT_IS_DESTROYED: true, C.CUDA_ERROR_ASSERT: true,
	C.CUDA_ERROR_HARDWARE_STACK_ERROR: true, C.CUDA_ERROR_ILLEGAL_INSTRUCTION: true, C.CUDA_ERROR_MISALIGNED_ADDRESS: true,
	C.CUDA_ERROR_INVALID_ADDRESS_SPACE: true, C.CUDA_ERROR_INVALID_PC: true, C.CUDA_ERROR_LAUNCH_FAILED: true, C.CUDA_ERROR_UNKNOWN: true,
}

// Dead reports whether the context of the call is lost.
func (err *Error) Dead() bool { return dead[err.Code] }

func check(call string, code C.int) error { return result(call, C.CUresult(code)) }

func result(call string, code C.CUresult) error {
	if code == C.CUDA_SUCCESS {
		return nil
	}
	return &Error{call, int(code)}
}

// of converts an error of cu, an integer of its own type with the value of the CUresult.
func of(call string, err error) error {
	if err == nil {
		return nil
	}
	if code := reflect.ValueOf(err); code.Kind() == reflect.Int {
		return &Error{call, int(code.Int())}
	}
	return fmt.Errorf("%s: %w", call, err)
}
