//go:build cuda && linux && cgo && amd64

package kernel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/modelgraph"
)

// known is what a place of the arena holds before anything ran.
func (server *server) known(matrix *Matrix, i, j int64) float64 {
	at := int64(matrix.Address-server.arena.Address) + (i*matrix.Stride+j)*matrix.DType.Bits()/8
	return value(server.pattern.Data, at%patternBytes, matrix.DType)
}

func value(data []byte, at int64, dtype modelgraph.DType) float64 {
	if dtype == modelgraph.F32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(data[at:])))
	}
	return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[at:])) << 16))
}

// judge runs a product twice. It returns a sum over its bytes, and the largest error of some values
// against float64 in units of the root of Σ(a·b)², without the rounding to bf16. Most of the
// library's kernels also round the summand first, as PyTorch does.
func (server *server) judge(one *served) (sum uint32, worst float64) {
	call := &Call{Kernel: one.kernel, Operands: one.operands}
	shape, _, err := productOf(call)
	server.must(err)
	d, size := call.matrix("d"), call.matrix("d").DType.Bits()/8
	made, err := driver.Pin(((d.Rows-1)*d.Stride + d.Columns) * size)
	server.must(err)
	for round := range 2 {
		server.fill(one.bytes)
		server.must(errors.Join(one.launch(&Step{Queue: server.stream}), server.stream.Down(made.Data, d.Address), server.stream.Synchronize()))
		hash := crc32.Checksum(made.Data, crc32.MakeTable(crc32.Castagnoli))
		if round > 0 && hash != sum {
			server.t.Errorf("%v: a second run has other bits", one)
		}
		sum = hash
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		i, j := random.Int64N(shape.Rows), random.Int64N(shape.Columns)
		want, square, added := server.want(call, shape, i, j)
		got := value(made.Data, (i*d.Stride+j)*size, d.DType)
		rounding := 0.
		if d.DType == modelgraph.BF16 {
			rounding = math.Abs(want) / 256
			if one.Add || one.Adds {
				rounding += math.Abs(want-added) / 256
			}
		}
		worst = max(worst, (math.Abs(got-want)-rounding)/math.Sqrt(square))
	}
	server.must(made.Free())
	return sum, worst
}

// want is a value of a product in float64, the sum of its terms' squares, and what
// of it is added to the product.
func (server *server) want(call *Call, shape *blas.Shape, i, j int64) (sum, square, added float64) {
	a, b := call.matrix("a"), call.matrix("b")
	term := func(value float64) { sum, square = sum+value, square+value*value }
	for k := range shape.Inner {
		atA, atB := [2]int64{i, k}, [2]int64{k, j}
		if shape.TransposeA {
			atA = [2]int64{k, i}
		}
		if shape.TransposeB {
			atB = [2]int64{j, k}
		}
		term(server.known(a, atA[0], atA[1]) * server.known(b, atB[0], atB[1]))
	}
	if bias := call.matrix("bias"); bias != nil {
		term(server.known(bias, 0, j))
	}
	if add := call.matrix("add"); add != nil {
		added = server.known(add, i, j)
	} else if call.adds() {
		added = server.known(call.matrix("d"), i, j)
	}
	term(added)
	return sum, square, added
}

// inPlace compares a product that overwrites its addend with one that does not: a stage
// of a cut has either, and both make the same bits.
func (server *server) inPlace(rows int64) {
	const columns, inner = 2048, 8192
	bf16 := modelgraph.BF16
	at := func(n int) driver.Address { return server.arena.Address + driver.Address(n<<26) }
	made := make([][]byte, 2)
	for n, over := range []bool{true, false} {
		server.fill(1 << 29)
		call := newTestCall("gemm", "form=nt", false).call
		call.Kernels, call.Workspace = server.kernels, blas.Workspace{Address: at(0), Bytes: 32 << 20}
		for i, role := range []string{"a", "b", "add", "d"} {
			call.Kernel.Operands = append(call.Kernel.Operands, recipe.Operand{Role: role})
			call.Operands = append(call.Operands, []Matrix{{at(1), bf16, rows, inner, inner}, {at(3), bf16, columns, inner, inner}, {at(4), bf16, rows, columns, columns}, {at(5), bf16, rows, columns, columns}}[i])
		}
		if over {
			call.Operands[3] = call.Operands[2]
		}
		launch, err := gemm(call)
		server.must(err)
		server.must(launch(&Step{Queue: server.stream}))
		made[n] = server.read(call.matrix("d"))
	}
	if !bytes.Equal(made[0], made[1]) {
		server.t.Errorf("%d rows: other bits where the product lies over what it adds", rows)
	}
}

// TestGPUProducts: every product of two models' training steps, in bf16 and in fp32,
// against float64, twice with the same bits. Its sums are those of any process.
func TestGPUProducts(t *testing.T) {
	if os.Getenv("DEVMAP_TEST_GPU") == "" {
		t.Skip("DEVMAP_TEST_GPU is not set")
	}
	server := newServer(t)

	all := append(productsOf(t, "llama-3.2-1b", costmodel.BF16True), productsOf(t, "qwen2.5-3b", costmodel.BF16True)...)
	for _, rows := range []int64{1, 4, 300, 1024, 8192} {
		server.inPlace(rows)
	}
	for _, one := range append(all, productsOf(t, "llama-3.2-1b", costmodel.FP32True)...) {
		server.prepare(one, false)
		sum, worst := server.judge(one)
		t.Logf("%08x %.2g %v", sum, worst, one)
		// Tensor cores cut off everything after a sum's last bit. Products in TF32 would have an
		// error of 3e-4.
		limit := 5e-5
		if one.In == modelgraph.F32.String() {
			limit = 2e-5
		}
		if !(worst < limit) {
			t.Errorf("%v: error %.2g", one, worst)
		}
	}
}
