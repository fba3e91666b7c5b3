//go:build cuda && linux && cgo && amd64

package blas

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "lt.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/library"
	"github.com/devmap-dev/devmap/modelgraph"
)

var opened struct {
	sync.Mutex
	done bool
}

// Open finds cuBLASLt, once in a process.
func Open() error {
	opened.Lock()
	defer opened.Unlock()
	if opened.done {
		return nil
	}
	if err := load(candidates()); err != nil {
		return err
	}
	opened.done = true
	return nil
}

func load(candidates []string) error {
	const size = 1 << 10
	reason := (*C.char)(C.malloc(size))
	defer C.free(unsafe.Pointer(reason))
	err := library.Find(candidates, func(path string) string {
		name := C.CString(path)
		defer C.free(unsafe.Pointer(name))
		if C.lt_open(name, reason, size) == 0 {
			return ""
		}
		return C.GoString(reason)
	})
	if err == nil {
		return nil
	}
	return fmt.Errorf("no cuBLASLt of CUDA 13, 12 or 11, which toolkits and PyTorch bring (LD_LIBRARY_PATH, CUDA_HOME or VIRTUAL_ENV may say where): %w", err)
}

// Library returns the path and the version of the open library.
func Library() string {
	return fmt.Sprintf("%s (%d)", C.GoString(C.lt_path()), int(C.lt_version()))
}

func check(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s (%d)", call, C.GoString(C.lt_status(code)), int(code))
}

// Shape is a row-major product D[Rows,Columns] = op(A)·op(B) + C. Strides are the distances of
// rows, in values. Products accumulate in fp32; those of fp32 never use TF32.
type Shape struct {
	Rows, Columns, Inner               int64
	TransposeA, TransposeB             bool
	StrideA, StrideB, StrideC, StrideD int64
	In, Out                            modelgraph.DType // of A and B, of C and D: BF16 or F32
	Bias                               bool             // a number of Out's type for each column

	alignA, alignB, alignC, alignD uint32
	workspace                      int64
}

// Handle is cuBLASLt in a context, for one thread. It keeps descriptors and algorithms by shape:
// choosing an algorithm takes many times as long as a launch.
type Handle struct {
	handle unsafe.Pointer
	plans  map[Shape]*C.Plan
}

// New makes a handle in the bound context.
func New() (*Handle, error) {
	if err := Open(); err != nil {
		return nil, err
	}
	handle := &Handle{plans: make(map[Shape]*C.Plan)}
	return handle, check("cublasLtCreate", C.lt_create(&handle.handle))
}

// Close destroys the handle and everything that it kept.
func (handle *Handle) Close() error {
	for _, plan := range handle.plans {
		C.lt_forget(plan)
		C.free(unsafe.Pointer(plan))
	}
	handle.plans = nil
	return check("cublasLtDestroy", C.lt_destroy(handle.handle))
}

// Workspace is GPU memory for a product's own use. Products of
// two streams must not share one.
type Workspace struct {
	Address driver.Address
	Bytes   int64
}

// Operands are the matrices of D = alpha·op(A)·op(B) + beta·C, with Bias added if the shape has
// one. C and D may be the same.
type Operands struct {
	A, B, C, D, Bias driver.Address
	Alpha, Beta      float32
}

// mostWorkspace is how much of its workspace a product may use: as much as in PyTorch on Hopper
// (CUDABlas: parseChosenWorkspaceSize). A larger one would lead to other algorithms.
const mostWorkspace = 32 << 20

// Product is a prepared product. It can run any number of times, on the handle's thread.
type Product struct {
	handle    *Handle
	plan      *C.Plan
	operands  Operands
	workspace Workspace
}

// Prepare makes a product ready. Its algorithm is the library's first choice, and follows from the
// shape, the alignment of addresses and the workspace's size. Arenas and tensors begin at multiples
// of 256 bytes, so that all devices and micro-batches compute the same bits for a shape.
func (handle *Handle) Prepare(workspace Workspace, shape *Shape, operands *Operands) (*Product, error) {
	key := *shape
	key.alignA, key.alignB, key.alignC, key.alignD = alignment(operands.A), alignment(operands.B), alignment(operands.C), alignment(operands.D)
	workspace.Bytes = min(workspace.Bytes, mostWorkspace)
	key.workspace = workspace.Bytes
	plan, err := handle.plan(&key)
	if err != nil {
		return nil, err
	}
	product := &Product{handle, plan, *operands, workspace}
	if !shape.Bias {
		product.operands.Bias = 0
	}
	return product, nil
}

// Run gives the product to a stream.
func (product *Product) Run(stream *driver.Stream) error {
	operands := &product.operands
	// Row-major D is column-major Dᵀ = op(B)ᵀ·op(A)ᵀ: the two change places.
	return check("cublasLtMatmul", C.lt_run(product.handle.handle, product.plan, C.float(operands.Alpha), C.float(operands.Beta),
		C.uint64_t(operands.B), C.uint64_t(operands.A), C.uint64_t(operands.C), C.uint64_t(operands.D), C.uint64_t(operands.Bias),
		C.uint64_t(product.workspace.Address), C.size_t(product.workspace.Bytes), stream.Handle()))
}

// alignment returns the largest power of two that divides an address, at most 256 bytes, the
// library's default.
func alignment(address driver.Address) uint32 {
	return uint32(min(address&-address, 256))
}

func (handle *Handle) plan(shape *Shape) (*C.Plan, error) {
	if plan := handle.plans[*shape]; plan != nil {
		return plan, nil
	}
	product := C.Product{
		type_in: typeOf(shape.In), type_out: typeOf(shape.Out), transpose_a: flag(shape.TransposeB), transpose_b: flag(shape.TransposeA), bias: flag(shape.Bias),
		rows: C.uint64_t(shape.Columns), columns: C.uint64_t(shape.Rows), inner: C.uint64_t(shape.Inner),
		stride_a: C.int64_t(shape.StrideB), stride_b: C.int64_t(shape.StrideA), stride_c: C.int64_t(shape.StrideC), stride_d: C.int64_t(shape.StrideD),
		align_a: C.uint32_t(shape.alignB), align_b: C.uint32_t(shape.alignA), align_c: C.uint32_t(shape.alignC), align_d: C.uint32_t(shape.alignD),
		workspace: C.size_t(shape.workspace),
	}
	plan := (*C.Plan)(C.calloc(1, C.sizeof_Plan))
	var found C.int
	err := check("cublasLtMatmulAlgoGetHeuristic", C.lt_plan(handle.handle, &product, plan, &found))
	if err == nil && found == 0 {
		err = errors.New("cublasLtMatmulAlgoGetHeuristic: it has no algorithm")
	}
	if err != nil {
		C.lt_forget(plan)
		C.free(unsafe.Pointer(plan))
		return nil, fmt.Errorf("product %d × %d × %d: %w", shape.Rows, shape.Columns, shape.Inner, err)
	}
	handle.plans[*shape] = plan
	return plan, nil
}

func typeOf(dtype modelgraph.DType) C.int {
	if dtype == modelgraph.BF16 {
		return C.REAL_16BF
	}
	return C.REAL_32F
}

func flag(value bool) C.int {
	if value {
		return 1
	}
	return 0
}
