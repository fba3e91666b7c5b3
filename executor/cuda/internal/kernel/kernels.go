//go:build cuda && linux && cgo && amd64

package kernel

import (
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// Kernels are what a thread launches: its own view of the context's modules, and
// a library for products.
type Kernels struct {
	modules   *modules // shared by all threads of the context
	functions map[string]*driver.Function
	arguments driver.Arguments
	products  *blas.Handle
	parts     *driver.Pinned
	hopper    bool
}

// New is for the first thread of a context. hopper: the GPU's capability is 9.0 and
// its driver takes PTX ISA 8.0, as CUDA 12's do. Attention has kernels for that.
func New(hopper bool) *Kernels {
	return (&Kernels{modules: &modules{loaded: make(map[string]*driver.Module)}, hopper: hopper}).ForThread()
}

// ForThread returns the same kernels for another thread; the first one's Unload is for both.
func (kernels *Kernels) ForThread() *Kernels {
	return &Kernels{modules: kernels.modules, functions: make(map[string]*driver.Function), hopper: kernels.hopper}
}

// Products are matrix products, whose library is opened where there are some.
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

// scratch is memory outside of the arena, by which a launch passes data to the next one.
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

// Close releases what is the thread's own.
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

// Unload gives the modules of all threads back.
func (kernels *Kernels) Unload() error {
	if kernels == nil {
		return nil
	}
	return kernels.modules.unload()
}

// Function is a kernel of package source or of the runtime, looked for once.
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
	found, err := kernels.Entry(module, func() (string, error) { return images.texts[module], nil }, name)
	if err == nil {
		kernels.functions[name] = found
	}
	return found, err
}

// Entry is a kernel of a module of any name, which is loaded where it is not yet.
func (kernels *Kernels) Entry(module string, image func() (string, error), name string) (*driver.Function, error) {
	loaded, err := kernels.modules.get(module, image)
	if err != nil {
		return nil, err
	}
	return loaded.Function(name)
}

// Launch has a stream run a kernel with the arguments that pack adds.
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

// Total adds count numbers in fp32 up in fp64, in their order: one thread does, as
// they are a few thousand, so that the sum is the same however parameters lie on
// devices, and that of the processor.
func (kernels *Kernels) Total(stream *driver.Stream, to, from driver.Address, count int64) error {
	one := driver.Shape{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	return kernels.Launch(stream, "total", one, func(arguments *driver.Arguments) {
		arguments.Address(from).Address(to).Uint32(uint32(count))
	})
}
