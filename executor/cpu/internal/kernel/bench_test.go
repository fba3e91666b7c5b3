package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/cpu/internal/kernel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// BenchmarkGemm is the products of a block, a token at a time and many, by form
// and type.
func BenchmarkGemm(b *testing.B) {
	random := rand.New(rand.NewPCG(12, 1))
	for _, dtype := range dtypes {
		for _, form := range []string{"nt", "nn", "tn"} {
			for _, rows := range []int64{1, 512} {
				if rows == 1 && form != "nt" {
					continue // products of backward have many rows
				}
				const columns, inner = 1024, 1024
				first, second := [2]int64{rows, inner}, [2]int64{inner, columns}
				if form == "nt" {
					second = [2]int64{columns, inner}
				}
				if form == "tn" {
					first = [2]int64{inner, rows}
				}
				call := &kernel.Call{
					Kernel:   &recipe.Kernel{Name: "gemm", Dims: []recipe.Dim{{Name: "form", Value: form}}, Operands: []recipe.Operand{{Role: "a"}, {Role: "b"}, {Role: "d", Mode: '>'}}},
					Operands: []kernel.Matrix{randomMatrix(random, dtype, first), randomMatrix(random, dtype, second), randomMatrix(random, dtype, [2]int64{rows, columns})},
				}
				b.Run(fmt.Sprintf("%s/%v/%dx%dx%d", form, dtype, rows, columns, inner), func(b *testing.B) {
					for b.Loop() {
						if err := kernel.Run(call); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(2*float64(rows)*columns*inner*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}

// randomMatrix is a matrix of normal numbers.
func randomMatrix(random *rand.Rand, dtype modelgraph.DType, shape [2]int64) kernel.Matrix {
	made := kernel.Matrix{DType: dtype, Rows: shape[0], Columns: shape[1], Stride: shape[1], Data: make([]byte, shape[0]*shape[1]*dtype.Bits()/8)}
	row := make([]float32, shape[1])
	for i := range shape[0] {
		for j := range row {
			row[j] = float32(random.NormFloat64())
		}
		made.Store(i, 0, row)
	}
	return made
}
