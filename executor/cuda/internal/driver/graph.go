//go:build cuda && linux && cgo && amd64

package driver

/*
#cgo noescape together
#cgo nocallback together
#include <stdlib.h>
#include <cuda.h>

// The driver takes these arguments one by one; there is one.
static CUresult together(CUfunction function, const unsigned int *grid, const unsigned int *block, unsigned int shared, CUstream stream, void *argument) {
	void *arguments[] = {argument};
	return cuLaunchCooperativeKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream, arguments);
}
*/
import "C"

import (
	"errors"
	"unsafe"

	"gorgonia.org/cu"
)

// Graph is work of a stream that the driver launches in one call.
type Graph struct{ graph C.CUgraphExec }

// Capture makes a graph of the calls that give makes for the stream. Nothing of them runs. The
// graph's memory on the GPU is there when Capture returns, and a launch needs no more.
func (stream *Stream) Capture(give func() error) (*Graph, error) {
	handle := C.CUstream(stream.Handle())
	if err := result("cuStreamBeginCapture", C.cuStreamBeginCapture(handle, C.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)); err != nil {
		return nil, err
	}
	var captured C.CUgraph
	given := give()
	err := result("cuStreamEndCapture", C.cuStreamEndCapture(handle, &captured)) // also after an error
	if err = errors.Join(given, err); err != nil {
		if captured != nil {
			err = errors.Join(err, result("cuGraphDestroy", C.cuGraphDestroy(captured)))
		}
		return nil, err
	}
	graph := new(Graph)
	err = result("cuGraphInstantiateWithFlags", C.cuGraphInstantiateWithFlags(&graph.graph, captured, 0))
	err = errors.Join(err, result("cuGraphDestroy", C.cuGraphDestroy(captured)))
	if graph.graph == nil {
		return nil, err
	}
	enter("graphs", 1, 0)
	if err = errors.Join(err, result("cuGraphUpload", C.cuGraphUpload(graph.graph, handle)), stream.Synchronize()); err != nil {
		return nil, errors.Join(err, graph.Destroy())
	}
	return graph, nil
}

// Run queues the graph on the stream.
func (stream *Stream) Run(graph *Graph) error {
	return result("cuGraphLaunch", C.cuGraphLaunch(graph.graph, C.CUstream(stream.Handle())))
}

// Destroy destroys the graph once its work has ended.
func (graph *Graph) Destroy() error {
	if err := result("cuGraphExecDestroy", C.cuGraphExecDestroy(graph.graph)); err != nil {
		return err
	}
	enter("graphs", -1, 0)
	return nil
}

// Together queues a kernel with one argument, whose blocks all run at the same time. They may wait
// for each other. It is an error if there is no room for all of them.
func (stream *Stream) Together(function *Function, shape Shape, argument *Arguments) error {
	code := C.together(function.function, (*C.uint)(&shape.Grid[0]), (*C.uint)(&shape.Block[0]), C.uint(shape.Shared), C.CUstream(stream.Handle()), unsafe.Pointer(&argument.data[0]))
	return result("cuLaunchCooperativeKernel", code)
}

// FillWord sets four bytes.
func (stream *Stream) FillWord(at Address, value uint32) error {
	return of("cuMemsetD32Async", cu.MemsetD32Async(cu.DevicePtr(at), uint(value), 1, stream.stream))
}

// Global returns the address and the size of a variable of the module.
func (module *Module) Global(name string) (Address, int64, error) {
	var at C.CUdeviceptr
	var bytes C.size_t
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	err := result("cuModuleGetGlobal", C.cuModuleGetGlobal(&at, &bytes, *(*C.CUmodule)(unsafe.Pointer(&module.module)), text))
	return Address(at), int64(bytes), err
}
