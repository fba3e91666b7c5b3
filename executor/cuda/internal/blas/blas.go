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
	var tried []error
	for _, path := range candidates {
		name := C.CString(path)
		failed := C.lt_open(name, reason, size)
		C.free(unsafe.Pointer(name))
		if failed == 0 {
			return nil
		}
		tried = append(tried, errors.New(C.GoString(reason)))
	}
	return fmt.Errorf("no cuBLASLt of CUDA 13, 12 or 11: %w", errors.Join(tried...))
}

// Library is where the open library lies, and its version.
func Library() string {
	return fmt.Sprintf("%s (%d)", C.GoString(C.lt_path()), int(C.lt_version()))
}

func check(call string, code C.int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s (%d)", call, C.GoString(C.lt_status(code)), int(code))
}

// Shape is a row-major product C[Rows,Columns] = op(A)·op(B), each matrix with its
// own distance from one row to the next, in values. Accumulation is in fp32, and of
// fp32 every product too: TF32 is never taken.
type Shape struct {
	Rows, Columns, Inner      int64
	TransposeA, TransposeB    bool
	StrideA, StrideB, StrideC int64
	In, Out                   modelgraph.DType // BF16 or F32
	Bias                      bool             // a number of Out's type for each column
	Batch                     int64            // products of one shape; 0 is 1
	StepA, StepB, StepC       int64            // from one of the batch to the next
	alignA, alignB, alignC    uint32
	workspace                 int64
}

// Handle is cuBLASLt in a context, for one thread. Descriptors and algorithms are
// kept by shape: to choose an algorithm takes many times what a launch does.
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

// Close gives the handle back, and what was kept.
func (handle *Handle) Close() error {
	for _, plan := range handle.plans {
		C.lt_forget(plan)
		C.free(unsafe.Pointer(plan))
	}
	handle.plans = nil
	return check("cublasLtDestroy", C.lt_destroy(handle.handle))
}

// Workspace is what a product may use of the GPU's memory for itself. Products of
// two streams must not share one.
type Workspace struct {
	Address driver.Address
	Bytes   int64
}

// Operands are a product's matrices. It is alpha·op(A)·op(B) + beta·C, + Bias where
// the shape has one, into C.
type Operands struct {
	A, B, C, Bias driver.Address
	Alpha, Beta   float32
}

// Product gives a product to a stream.
func (handle *Handle) Product(stream *driver.Stream, workspace Workspace, shape Shape, operands *Operands) error {
	shape.alignA, shape.alignB, shape.alignC = alignment(operands.A), alignment(operands.B), alignment(operands.C)
	shape.workspace = workspace.Bytes
	plan, err := handle.plan(&shape)
	if err != nil {
		return err
	}
	bias := operands.Bias
	if !shape.Bias {
		bias = 0
	}
	// Row-major C is column-major Cᵀ = op(B)ᵀ·op(A)ᵀ: the two change places.
	return check("cublasLtMatmul", C.lt_run(handle.handle, plan, C.float(operands.Alpha), C.float(operands.Beta),
		C.uint64_t(operands.B), C.uint64_t(operands.A), C.uint64_t(operands.C), C.uint64_t(operands.C), C.uint64_t(bias),
		C.uint64_t(workspace.Address), C.size_t(workspace.Bytes), stream.Handle()))
}

// alignment is of an address: a power of two, at most 256 bytes, which is what the
// library takes for granted where nothing is said.
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
		stride_a: C.int64_t(shape.StrideB), stride_b: C.int64_t(shape.StrideA), stride_c: C.int64_t(shape.StrideC),
		batch: C.int(shape.Batch), step_a: C.int64_t(shape.StepB), step_b: C.int64_t(shape.StepA), step_c: C.int64_t(shape.StepC),
		align_a: C.uint32_t(shape.alignB), align_b: C.uint32_t(shape.alignA), align_c: C.uint32_t(shape.alignC),
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
