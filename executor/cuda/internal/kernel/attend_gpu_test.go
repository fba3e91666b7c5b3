//go:build cuda && linux && cgo && amd64

package kernel

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestGPUAttention holds attention, forward and backward, to recipetest's in
// float64, over parts of fused tensors, with Hopper's kernels and without. The
// kernels' own judge is attention/check.py: this one is of what they are asked for.
func TestGPUAttention(t *testing.T) {
	if os.Getenv("DEVMAP_TEST_GPU") == "" {
		t.Skip("DEVMAP_TEST_GPU is not set")
	}
	server := newServer(t)
	server.kernels.processors = 3 // so that a block has several tasks, and waits for others
	server.fill(1 << 27)
	for _, hopper := range []bool{true, false} {
		server.kernels.hopper = hopper
		for _, dtype := range []modelgraph.DType{modelgraph.BF16, modelgraph.F32} {
			for _, dims := range []string{
				"sequences=2 heads=4 kv=2 dim=64 seq=70 causal=1 scale=0.125",
				"sequences=1 heads=2 kv=1 dim=128 seq=129 causal=1 window=30 scale=0.09 cap=5",
				"sequences=3 heads=3 kv=3 dim=80 seq=33 scale=0.1",
				"sequences=1 heads=4 kv=2 dim=128 seq=150 causal=1 scale=0.09",
				"sequences=2 heads=2 kv=1 dim=96 seq=140 causal=1 window=50 scale=0.1",
				"sequences=1 heads=2 kv=1 dim=256 seq=150 causal=1 scale=0.06",
			} {
				server.attends(dims, dtype)
			}
		}
	}
}

// attends runs the kernels on numbers of the pattern; attention_delta is
// recipetest's.
func (server *server) attends(dims string, dtype modelgraph.DType) {
	sizes := newTestCall("attention", dims, true).call
	rows, heads := sizes.size("sequences", 0)*sizes.size("seq", 0), sizes.size("heads", 0)
	wide, narrow := heads*sizes.size("dim", 0), sizes.size("kv", 0)*sizes.size("dim", 0)
	size := dtype.Bits() / 8
	fused := wide + 2*narrow
	base := server.arena.Address
	// q, k, v fused, their gradients fused, y, dy, lse, delta: 4 MiB each.
	region := func(n, column int64) driver.Address { return base + driver.Address(n<<22+column*size) }
	parts := func(testCall *testCall, n int64, mode string, roles ...string) *testCall {
		for i, role := range roles {
			column, columns := []int64{0, wide, wide + narrow}[i], []int64{wide, narrow, narrow}[i]
			if role != "" {
				testCall.lay(mode+role, region(n, column), rows, columns, fused, dtype)
			}
		}
		return testCall
	}
	forward := parts(newTestCall("attention", dims, true), 0, "", "q", "k", "v").lay(">y", region(2, 0), rows, wide, wide, dtype).lay(">lse", region(4, 0), rows, heads, heads, modelgraph.F32)
	delta := newTestCall("attention_delta", dims, true).lay("y", region(2, 0), rows, wide, wide, dtype).lay("dy", region(3, 0), rows, wide, wide, dtype).lay(">delta", region(5, 0), rows, heads, heads, modelgraph.F32)
	back := parts(newTestCall("attention_backward", dims, true), 0, "", "q", "k", "v").lay("dy", region(3, 0), rows, wide, wide, dtype).
		lay("lse", region(4, 0), rows, heads, heads, modelgraph.F32).lay("delta", region(5, 0), rows, heads, heads, modelgraph.F32)
	server.check(forward, dims, true)
	server.check(delta, dims, false)
	parts(back, 1, ">", "dq", "dk", "dv")
	queries := int64(64)
	dim := sizes.size("dim", 0)
	if dim == 64 {
		queries = 128
	}
	tiles := sizes.size("sequences", 0) * heads * ((sizes.size("seq", 0) + queries - 1) / queries)
	back.lay(">sums", region(6, 0), tiles, queries*dim+1, queries*dim+1, modelgraph.F32)
	server.check(back, dims, true)
}

// check runs a kernel on the GPU, or else writes recipetest's result there. Then it compares
// the GPU's values with recipetest's.
func (server *server) check(testCall *testCall, dims string, runs bool) {
	call := testCall.call
	call.Kernels, call.Workspace = server.kernels, blas.Workspace{Address: server.arena.Address + 1<<26, Bytes: 32 << 20}
	var before, after [][]byte
	for i := range call.Operands {
		before = append(before, server.read(&call.Operands[i]))
		matrix, judged := &call.Operands[i], &testCall.judge.Operands[i]
		judged.First, judged.Stride, judged.Values = 0, matrix.Columns, numbers(before[i], matrix)
	}
	testCall.judge.Run(server.t)
	if runs {
		launch, err := attend(call)
		server.must(err)
		server.must(launch(&Step{Queue: server.stream}))
	}
	for i := range call.Operands {
		matrix, operand := &call.Operands[i], &call.Kernel.Operands[i]
		if !runs && operand.Mode == '>' {
			data := make([]byte, 0, matrix.Rows*matrix.Columns*4)
			for _, number := range testCall.judge.Operands[i].Values {
				data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(number)))
			}
			server.must(errors.Join(server.stream.Up(matrix.Address, data), server.stream.Synchronize()))
		}
		after = append(after, server.read(matrix))
		if operand.Role == "sums" {
			continue // only the kernel knows what is in it
		}
		var wrong, whole float64
		for n, got := range numbers(after[i], matrix) {
			want := testCall.judge.Operands[i].Values[n]
			wrong, whole = wrong+(got-want)*(got-want), whole+want*want
		}
		limit := 1e-5
		if matrix.DType == modelgraph.BF16 {
			limit = 1e-2
		}
		if err := math.Sqrt(wrong / whole); !(err <= limit) {
			server.t.Errorf("%s %s of %v: error %.2g", dims, call.Kernel.Name+" "+operand.Role, matrix, err)
		}
	}
}

// read is a matrix's bytes, all of its rows.
func (server *server) read(matrix *Matrix) []byte {
	pinned, err := driver.Pin(((matrix.Rows-1)*matrix.Stride + matrix.Columns) * matrix.DType.Bits() / 8)
	server.must(err)
	server.must(errors.Join(server.stream.Down(pinned.Data, matrix.Address), server.stream.Synchronize()))
	data := append([]byte(nil), pinned.Data...)
	server.must(pinned.Free())
	return data
}

func numbers(data []byte, matrix *Matrix) []float64 {
	size := matrix.DType.Bits() / 8
	all := make([]float64, 0, matrix.Rows*matrix.Columns)
	for i := range matrix.Rows {
		for j := range matrix.Columns {
			all = append(all, value(data, (i*matrix.Stride+j)*size, matrix.DType))
		}
	}
	return all
}
