//go:build cuda && linux && cgo && amd64

package kernel

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// Kernels launches kernels for one thread. It has its own view of the context's modules, and a
// library for matrix products.
type Kernels struct {
	modules   *modules // shared by all threads of the context
	functions map[string]*driver.Function
	arguments driver.Arguments
	products  *blas.Handle
	parts     *driver.Pinned
	hopper    bool
	// thread is its number among the context's threads, from 0 on.
	thread int
	// placed is the address that place keeps, 0 before its first use.
	placed driver.Address
	// advanced is the position that the last decode writes at its end, 0 if it writes none.
	advanced int64
	// processors is how many multiprocessors the GPU has.
	processors int
}

// Hopper reports whether a GPU of a compute capability takes the kernels that attention and decode
// steps have for Hopper. They need PTX ISA 8.1, which drivers of CUDA 12.1 and newer take: version is
// the driver's, 12010 for 12.1.
func Hopper(capability, version int) bool { return capability == 90 && version >= 12010 }

// New returns the kernels of a context's first thread. processors is how many multiprocessors the GPU
// has. For hopper, see [Hopper].
func New(hopper bool, processors int) *Kernels {
	return (&Kernels{modules: &modules{loaded: make(map[string]*driver.Module)}, hopper: hopper, processors: processors}).ForThread()
}

// ForThread returns the same kernels for another thread; the first one's Unload is for both.
func (kernels *Kernels) ForThread() *Kernels {
	thread := kernels.modules.threads
	kernels.modules.threads++
	return &Kernels{modules: kernels.modules, functions: make(map[string]*driver.Function), hopper: kernels.hopper, thread: thread, processors: kernels.processors}
}

// Products returns the library for matrix products, and opens it on first use.
func (kernels *Kernels) Products() (*blas.Handle, error) {
	if kernels.products == nil {
		handle, err := blas.New()
		if err != nil {
			return nil, err
		}
		kernels.products = handle
	}
	return kernels.products, nil
}

// scratch returns memory outside of the arena, through which a launch passes data to the next one.
func (kernels *Kernels) scratch() (driver.Address, error) {
	if kernels.parts == nil {
		pinned, err := driver.Pin(partsBytes)
		if err != nil {
			return 0, err
		}
		kernels.parts = pinned
	}
	return kernels.parts.Address(), nil
}

// Close releases what belongs to the thread.
func (kernels *Kernels) Close() error {
	if kernels == nil {
		return nil
	}
	err := kernels.parts.Free()
	if kernels.products == nil {
		return err
	}
	handle := kernels.products
	kernels.products = nil
	return errors.Join(err, handle.Close())
}

// Unload unloads the modules of all threads.
func (kernels *Kernels) Unload() error {
	if kernels == nil {
		return nil
	}
	return kernels.modules.unload()
}

// Function returns a kernel of package source or of the runtime, and keeps it.
func (kernels *Kernels) Function(name string) (*driver.Function, error) {
	if found := kernels.functions[name]; found != nil {
		return found, nil
	}
	images, err := ours()
	if err != nil {
		return nil, err
	}
	module := images.holder[name]
	if module == "" {
		return nil, fmt.Errorf("no module has a kernel %s", name)
	}
	loaded, err := kernels.own(module)
	if err != nil {
		return nil, err
	}
	found, err := loaded.Function(name)
	if err == nil {
		kernels.functions[name] = found
	}
	return found, err
}

// own returns a module of package source or the runtime's, and loads it on first use.
func (kernels *Kernels) own(module string) (*driver.Module, error) {
	return kernels.modules.get(module, func() (string, error) {
		images, err := ours()
		return images.texts[module], err
	})
}

// global returns the address and the size of a variable of one of these modules.
func (kernels *Kernels) global(module, name string) (driver.Address, int64, error) {
	loaded, err := kernels.own(module)
	if err != nil {
		return 0, 0, err
	}
	return loaded.Global(name)
}

// Entry returns a kernel of any module, and loads the module on first use.
func (kernels *Kernels) Entry(module string, image func() (string, error), name string) (*driver.Function, error) {
	loaded, err := kernels.modules.get(module, image)
	if err != nil {
		return nil, err
	}
	return loaded.Function(name)
}

// Launch queues a kernel on a stream, with the arguments that pack adds.
func (kernels *Kernels) Launch(stream *driver.Stream, name string, shape driver.Shape, pack func(arguments *driver.Arguments)) error {
	function, err := kernels.Function(name)
	if err != nil {
		return err
	}
	pack(kernels.arguments.Reset())
	return stream.Launch(function, shape, &kernels.arguments)
}

// Hang has a stream wait until four bytes of pinned memory are not all zero. If nothing
// changes them, it waits for ever.
func (kernels *Kernels) Hang(stream *driver.Stream, flag driver.Address) error {
	one := driver.Shape{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	return kernels.Launch(stream, "hang", one, func(arguments *driver.Arguments) { arguments.Address(flag) })
}

// Carry copies words of four bytes into pinned memory, whose address is the host's own.
func (kernels *Kernels) Carry(stream *driver.Stream, to []byte, from driver.Address) error {
	one := driver.Shape{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}}
	return kernels.Launch(stream, "carry", one, func(arguments *driver.Arguments) {
		arguments.Address(from).Address(driver.Address(uintptr(unsafe.Pointer(unsafe.SliceData(to))))).Uint32(uint32(len(to) / 4))
	})
}

// Total adds up count fp32 numbers in fp64, in order. One thread does it, as there are a few
// thousand: so the sum does not depend on the placement of parameters, and equals the processor's.
func (kernels *Kernels) Total(stream *driver.Stream, to, from driver.Address, count int64) error {
	one := driver.Shape{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	return kernels.Launch(stream, "total", one, func(arguments *driver.Arguments) {
		arguments.Address(from).Address(to).Uint32(uint32(count))
	})
}
