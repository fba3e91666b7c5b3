package cpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/executor/cpu/internal/kernel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestInfinite: one NaN or infinity is found at any place among any other values.
func TestInfinite(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, count := range []int64{1, 2, 3, 4, 7, 16, 33} {
		for _, dtype := range []modelgraph.DType{modelgraph.F32, modelgraph.BF16} {
			size := dtype.Bits() / 8
			matrix := kernel.Matrix{DType: dtype, Rows: 1, Columns: count, Stride: count, Data: make([]byte, count*size)}
			for range 50 {
				finite := make([]float32, count)
				for i := range finite {
					finite[i] = []float32{0, math.MaxFloat32 / 2, -math.MaxFloat32 / 2, math.SmallestNonzeroFloat32, float32(random.NormFloat64())}[random.IntN(5)]
				}
				matrix.Store(0, 0, finite)
				if value, found := infinite(matrix.DType, matrix.Data); found {
					t.Fatalf("%v: finds %v in %v", dtype, value, finite)
				}
				at, want := random.Int64N(count), []float32{nan, inf, -inf}[random.IntN(3)]
				matrix.Store(0, at, []float32{want})
				if value, found := infinite(matrix.DType, matrix.Data); !found || fmt.Sprint(value) != fmt.Sprint(want) {
					t.Fatalf("%v: %v at %d of %d is told as %v, %v", dtype, want, at, count, value, found)
				}
			}
		}
	}
	if _, found := infinite(modelgraph.F32, binary.LittleEndian.AppendUint32(nil, 0xff800001)); !found {
		t.Error("a negative NaN is not found")
	}
}

func BenchmarkInfinite(b *testing.B) {
	matrix := kernel.Matrix{DType: modelgraph.F32, Data: make([]byte, 64<<20)}
	b.SetBytes(int64(len(matrix.Data)))
	for b.Loop() {
		infinite(matrix.DType, matrix.Data)
	}
}
