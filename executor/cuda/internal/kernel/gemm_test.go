//go:build cuda && linux && cgo && amd64

package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/internal/recipetest"
	"github.com/devmap-dev/devmap/modelgraph"
)

// testCall is a call whose matrices are in one memory, each a part of a wider one.
type testCall struct {
	call   *Call
	judge  *recipetest.Call
	memory []float64
	at     int64 // values so far
}

// add adds a matrix to the call: mode and role as "*d".
func (testCall *testCall) add(operand string, rows, columns int64, dtype modelgraph.DType) *testCall {
	mode := byte(' ')
	if role := strings.TrimLeft(operand, "*>+"); role != operand {
		mode, operand = operand[0], role
	}
	stride := columns + 3
	if rows == 1 {
		stride = columns
	}
	first := testCall.at + 5
	testCall.at = first + rows*stride + 7
	testCall.call.Kernel.Operands = append(testCall.call.Kernel.Operands, recipe.Operand{Role: operand, Mode: mode})
	testCall.call.Operands = append(testCall.call.Operands, Matrix{driver.Address(first * dtype.Bits() / 8), dtype, rows, columns, stride})
	for int64(len(testCall.memory)) < testCall.at {
		testCall.memory = append(testCall.memory, rand.NormFloat64())
	}
	testCall.judge.Operands = append(testCall.judge.Operands, recipetest.Matrix{Rows: rows, Columns: columns, First: first, Stride: stride})
	return testCall
}

func newTestCall(name, dims string, begins bool) *testCall {
	kernel := &recipe.Kernel{Name: name}
	for _, dim := range strings.Fields(dims) {
		key, value, _ := strings.Cut(dim, "=")
		kernel.Dims = append(kernel.Dims, recipe.Dim{Name: key, Value: value})
	}
	return &testCall{call: &Call{Kernel: kernel, Begins: begins}, judge: &recipetest.Call{Kernel: kernel, Begins: begins}}
}

// multiply is what the library makes of a product, as package blas says it.
func multiply(memory []float64, shape *blas.Shape, operands *blas.Operands) {
	in, out := shape.In.Bits()/8, shape.Out.Bits()/8
	at := func(base driver.Address, size, i, stride, j int64, turn bool) *float64 {
		if turn {
			i, j = j, i
		}
		return &memory[int64(base)/size+i*stride+j]
	}
	made := make([]float64, 0, shape.Rows*shape.Columns)
	for i := range shape.Rows {
		for j := range shape.Columns {
			sum := 0.
			for k := range shape.Inner {
				sum += *at(operands.A, in, i, shape.StrideA, k, shape.TransposeA) * *at(operands.B, in, k, shape.StrideB, j, shape.TransposeB)
			}
			sum *= float64(operands.Alpha)
			if operands.Beta != 0 {
				sum += float64(operands.Beta) * *at(operands.C, out, i, shape.StrideC, j, false)
			}
			if shape.Bias {
				sum += *at(operands.Bias, out, 0, 0, j, false)
			}
			made = append(made, sum)
		}
	}
	for n, value := range made {
		*at(operands.D, out, int64(n)/shape.Columns, shape.StrideD, int64(n)%shape.Columns, false) = value
	}
}

// TestProducts compares every product that a recipe may write with recipetest's. The
// library writes the product and nothing else.
func TestProducts(t *testing.T) {
	for _, form := range []string{"nn", "nt", "tn"} {
		for _, more := range []string{"", "bias", "add", "bias add", "*", "* begins"} {
			for _, dtype := range []modelgraph.DType{modelgraph.BF16, modelgraph.F32} {
				const m, n, k = 3, 5, 7
				testCall := newTestCall("gemm", fmt.Sprintf("form=%s m=%d n=%d k=%d", form, m, n, k), more == "* begins")
				a, b := [2]int64{m, k}, [2]int64{k, n}
				if form == "nt" {
					b = [2]int64{n, k}
				}
				if form == "tn" {
					a = [2]int64{k, m}
				}
				testCall.add("a", a[0], a[1], dtype).add("b", b[0], b[1], dtype)
				if strings.Contains(more, "bias") {
					testCall.add("bias", 1, n, dtype)
				}
				if strings.Contains(more, "add") {
					testCall.add("add", m, n, dtype)
				}
				if strings.HasPrefix(more, "*") {
					testCall.add("*d", m, n, dtype)
				} else {
					testCall.add(">d", m, n, dtype)
				}
				testCall.same(t)
			}
		}
	}
}

// TestProductsOver: an add that d lies over, as every branch's last has, and the
// head's, whose sum over the parts of the vocabulary is in fp32.
func TestProductsOver(t *testing.T) {
	testCall := newTestCall("gemm", "form=nn m=3 n=5 k=7", false).add("a", 3, 7, modelgraph.F32).add("b", 7, 5, modelgraph.F32).add("add", 3, 5, modelgraph.F32)
	testCall.call.Kernel.Operands = append(testCall.call.Kernel.Operands, recipe.Operand{Role: "d", Mode: '>'})
	testCall.call.Operands = append(testCall.call.Operands, testCall.call.Operands[2])
	// recipetest clears d first: its add is a copy that does not lie there.
	copied := testCall.judge.Operands[2]
	testCall.judge.Operands = append(testCall.judge.Operands, copied)
	testCall.judge.Operands[2].First = int64(len(testCall.memory))
	testCall.memory = append(testCall.memory, testCall.memory[copied.First:copied.First+copied.Rows*copied.Stride]...)
	testCall.same(t)

	call := newTestCall("gemm", "form=nn m=3 n=5 k=7", false).add("a", 3, 7, modelgraph.BF16).add("b", 7, 5, modelgraph.BF16).add("add", 3, 5, modelgraph.F32).add(">d", 3, 5, modelgraph.F32).call
	shape, operands, err := productOf(call)
	if err != nil || shape.In != modelgraph.BF16 || shape.Out != modelgraph.F32 || operands.Beta != 1 || operands.C != call.Operands[2].Address {
		t.Errorf("%+v, %+v, %v", shape, operands, err)
	}
}

func (testCall *testCall) same(t *testing.T) {
	t.Helper()
	want, got := append([]float64(nil), testCall.memory...), append([]float64(nil), testCall.memory...)
	for i := range testCall.judge.Operands {
		testCall.judge.Operands[i].Values = want
	}
	testCall.judge.Run(t)
	shape, operands, err := productOf(testCall.call)
	if err != nil {
		t.Error(err)
		return
	}
	multiply(got, shape, operands)
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-6 {
			t.Errorf("%v %v: value %d is %v, want %v: %+v, %+v", testCall.call.Kernel.Dims, testCall.call.Kernel.Operands, i, got[i], want[i], shape, operands)
			return
		}
	}
}

// TestProductsRefuse: matrices that do not meet are a defect, and the error has their sizes.
func TestProductsRefuse(t *testing.T) {
	bf16, f32 := modelgraph.BF16, modelgraph.F32
	for want, testCall := range map[string]*testCall{
		`it has no operand "b"`: newTestCall("gemm", "form=nn", false).add("a", 3, 4, f32).add(">d", 3, 6, f32),
		"form=nn: a is 3 × 4 of F32, b 5 × 6 of F32 and d 3 × 6 of F32":   newTestCall("gemm", "form=nn", false).add("a", 3, 4, f32).add("b", 5, 6, f32).add(">d", 3, 6, f32),
		"form=nt: a is 3 × 4 of F32, b 6 × 4 of F32 and d 3 × 7 of F32":   newTestCall("gemm", "form=nt", false).add("a", 3, 4, f32).add("b", 6, 4, f32).add(">d", 3, 7, f32),
		"form=tn: a is 4 × 3 of BF16, b 4 × 6 of F32 and d 3 × 6 of BF16": newTestCall("gemm", "form=tn", false).add("a", 4, 3, bf16).add("b", 4, 6, f32).add(">d", 3, 6, bf16),
		"form=nn: bias is 1 × 5 of F32 and d 3 × 6 of F32":                newTestCall("gemm", "form=nn", false).add("a", 3, 4, f32).add("b", 4, 6, f32).add("bias", 1, 5, f32).add(">d", 3, 6, f32),
		"add is 3 × 6 of BF16 and d 3 × 6 of F32":                         newTestCall("gemm", "form=nn", false).add("a", 3, 4, f32).add("b", 4, 6, f32).add("add", 3, 6, bf16).add(">d", 3, 6, f32),
		"add is 3 × 6 of F32 and d 3 × 6 of F32":                          newTestCall("gemm", "form=nn", false).add("a", 3, 4, f32).add("b", 4, 6, f32).add("add", 3, 6, f32).add("*d", 3, 6, f32),
	} {
		if _, _, err := productOf(testCall.call); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
