//go:build cuda && linux && cgo && amd64

package driver

/*
#cgo noescape launch
#cgo nocallback launch
#include <cuda.h>

// One buffer holds all arguments, each at a multiple of its size. So Go passes one pointer, and
// allocates nothing for an argument.
static CUresult launch(CUfunction function, const unsigned int *grid, const unsigned int *block, unsigned int shared,
                       CUstream stream, void *arguments, size_t bytes) {
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
	return cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream, NULL, extra);
}

// A map has to be at a multiple of 64 in constant memory, but arguments begin there at another place,
// which depends on the GPU. So the driver gets the arguments of such a kernel one by one.
static CUresult launchEach(CUfunction function, const unsigned int *grid, const unsigned int *block, unsigned int shared,
                           CUstream stream, char *arguments, const unsigned int *starts, int count, int together) {
	void *each[count];
	for (int i = 0; i < count; i++) each[i] = arguments + starts[i];
	if (together) return cuLaunchCooperativeKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream, each);
	return cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream, each, NULL);
}
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"gorgonia.org/cu"
)

// Module is a set of kernels in the bound context.
type Module struct{ module cu.Module }

// LoadModule loads PTX, which the driver compiles, or a binary for the GPU.
func LoadModule(image string) (*Module, error) {
	module, err := cu.LoadData(image)
	if err != nil {
		return nil, of("cuModuleLoadData", err)
	}
	enter("modules", 1, 0)
	return &Module{module}, nil
}

// Unload unloads the module.
func (module *Module) Unload() error {
	if err := of("cuModuleUnload", module.module.Unload()); err != nil {
		return err
	}
	enter("modules", -1, 0)
	return nil
}

// Function is a kernel of a module.
type Function struct{ function C.CUfunction }

// Function finds a kernel by the name in its source.
func (module *Module) Function(name string) (*Function, error) {
	found, err := module.module.Function(name)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, of("cuModuleGetFunction", err))
	}
	return &Function{*(*C.CUfunction)(unsafe.Pointer(&found))}, nil
}

// Share allows the kernel that many bytes of dynamic shared memory, also more than 48 KiB.
func (function *Function) Share(bytes int) error {
	return result("cuFuncSetAttribute", C.cuFuncSetAttribute(function.function, C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes)))
}

// Shape is how many blocks of how many threads a launch has. Shared is the dynamic shared memory of
// each block in bytes. Together is for launches that begin with tiles: all blocks run at the same time
// and may wait for each other. It is an error if they do not fit.
type Shape struct {
	Grid, Block [3]uint32
	Shared      int
	Together    bool
}

// Launch queues a kernel on the stream.
func (stream *Stream) Launch(function *Function, shape Shape, arguments *Arguments) error {
	data := arguments.data
	if len(data) == 0 {
		data = make([]byte, 1)
	}
	if len(arguments.starts) > 0 {
		var together C.int
		if shape.Together {
			together = 1
		}
		return result("cuLaunchKernel", C.launchEach(function.function, (*C.uint)(&shape.Grid[0]), (*C.uint)(&shape.Block[0]), C.uint(shape.Shared),
			C.CUstream(stream.Handle()), (*C.char)(unsafe.Pointer(&data[0])), (*C.uint)(&arguments.starts[0]), C.int(len(arguments.starts)), together))
	}
	code := C.launch(function.function, (*C.uint)(&shape.Grid[0]), (*C.uint)(&shape.Block[0]), C.uint(shape.Shared),
		C.CUstream(stream.Handle()), unsafe.Pointer(&data[0]), C.size_t(len(arguments.data)))
	return result("cuLaunchKernel", code)
}

// Arguments are the arguments of a launch, in the kernel's order. Any number of launches may use
// them.
type Arguments struct {
	data   []byte
	starts []uint32 // of each argument, if the first is a description of tiles
}

// Bytes returns their size so far.
func (arguments *Arguments) Bytes() int { return len(arguments.data) }

// Reset removes the arguments, and keeps their memory.
func (arguments *Arguments) Reset() *Arguments {
	arguments.data, arguments.starts = arguments.data[:0], arguments.starts[:0]
	return arguments
}

// Again overwrites the arguments from a byte on with those that add adds.
func (arguments *Arguments) Again(at int, add func(arguments *Arguments)) {
	whole := len(arguments.data)
	arguments.data = arguments.data[:at]
	add(arguments)
	arguments.data = arguments.data[:whole]
}

// Address adds a pointer.
func (arguments *Arguments) Address(value Address) *Arguments { return arguments.Uint64(uint64(value)) }

// Uint64 adds eight bytes.
func (arguments *Arguments) Uint64(value uint64) *Arguments {
	arguments.align(8)
	arguments.data = binary.LittleEndian.AppendUint64(arguments.data, value)
	return arguments
}

// Int64 adds eight bytes.
func (arguments *Arguments) Int64(value int64) *Arguments { return arguments.Uint64(uint64(value)) }

// Uint32 adds four bytes.
func (arguments *Arguments) Uint32(value uint32) *Arguments {
	arguments.align(4)
	arguments.data = binary.LittleEndian.AppendUint32(arguments.data, value)
	return arguments
}

// Int32 adds four bytes.
func (arguments *Arguments) Int32(value int32) *Arguments { return arguments.Uint32(uint32(value)) }

// Float32 adds four bytes.
func (arguments *Arguments) Float32(value float32) *Arguments {
	return arguments.Uint32(math.Float32bits(value))
}

// Float64 adds eight bytes.
func (arguments *Arguments) Float64(value float64) *Arguments {
	return arguments.Uint64(math.Float64bits(value))
}

// align pads to a multiple of size, as the kernel's own layout does, for an argument that begins there.
func (arguments *Arguments) align(size int) {
	for len(arguments.data)%size != 0 {
		arguments.data = append(arguments.data, 0)
	}
	if size == 64 || len(arguments.starts) > 0 {
		arguments.starts = append(arguments.starts, uint32(len(arguments.data)))
	}
}
