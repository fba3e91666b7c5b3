//go:build cuda && linux && cgo && amd64

package kernel

import (
	_ "embed"
	"errors"

	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
)

// runtimePTX is what the runtime itself needs beside copies and fills.
//
//go:embed runtime.ptx
var runtimePTX string

// Kernels are what was loaded into a context, for one thread.
type Kernels struct {
	modules   []*driver.Module // shared by all threads of the context
	functions map[string]*driver.Function
	arguments driver.Arguments
	products  *blas.Handle
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

// Close gives back what is the thread's own.
func (kernels *Kernels) Close() error {
	if kernels == nil || kernels.products == nil {
		return nil
	}
	handle := kernels.products
	kernels.products = nil
	return handle.Close()
}

// Load loads all modules into the bound context.
func Load() (*Kernels, error) {
	kernels := &Kernels{functions: make(map[string]*driver.Function)}
	for _, image := range []string{runtimePTX} {
		module, err := driver.LoadModule(image)
		if err != nil {
			return nil, errors.Join(err, kernels.Unload())
		}
		kernels.modules = append(kernels.modules, module)
	}
	return kernels, nil
}

// Beside are the same kernels for another thread; the first one's Unload is for both.
func (kernels *Kernels) Beside() *Kernels {
	return &Kernels{modules: kernels.modules, functions: make(map[string]*driver.Function)}
}

// Unload gives the modules of all threads back.
func (kernels *Kernels) Unload() error {
	if kernels == nil {
		return nil
	}
	var all []error
	for _, module := range kernels.modules {
		all = append(all, module.Unload())
	}
	kernels.modules = nil
	return errors.Join(all...)
}

// Function is a kernel by its name in the source, looked for once.
func (kernels *Kernels) Function(name string) (*driver.Function, error) {
	if found := kernels.functions[name]; found != nil {
		return found, nil
	}
	var all []error
	for _, module := range kernels.modules {
		found, err := module.Function(name)
		if err == nil {
			kernels.functions[name] = found
			return found, nil
		}
		all = append(all, err)
	}
	return nil, errors.Join(all...)
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

// Total adds count numbers in fp32 up in fp64, in their order: one thread does, as
// they are a few thousand, so that the sum is the same however parameters lie on
// devices, and that of the processor.
func (kernels *Kernels) Total(stream *driver.Stream, to, from driver.Address, count int64) error {
	one := driver.Shape{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	return kernels.Launch(stream, "total", one, func(arguments *driver.Arguments) {
		arguments.Address(from).Address(to).Uint32(uint32(count))
	})
}
