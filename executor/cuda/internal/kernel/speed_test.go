//go:build cuda && linux && cgo && amd64

package kernel

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// served is a product of a model's training step, as speed.py is told of it.
type served struct {
	Model, Form     string
	M, N, K         int64
	Bias, Add, Adds bool
	In, Out         string
	Count           int // in a step
	kernel          *recipe.Kernel
	operands        []Matrix // addresses in their tensors
	launch          Launch
	bytes           int64 // of the arena
}

// productsOf are the products of a step of 4 sequences of 2,048 tokens, each once.
func productsOf(t *testing.T, model string, precision costmodel.Precision) (all []*served) {
	t.Helper()
	graph, err := load.Model(model, load.Options{BuiltIn: fixtures.Models()})
	if err != nil {
		t.Fatal(err)
	}
	made, err := recipe.Of(graph, &costmodel.Workload{Mode: costmodel.Train, Batch: 4, MicroBatches: 1, Seq: 2048, Precision: precision, Optimizer: costmodel.AdamW})
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]*served)
	for i := range made.Units {
		code := made.Units[i].Code
		for _, routine := range []*recipe.Routine{&code.Forward, &code.Backward} {
			for j := range routine.Kernels {
				if routine.Kernels[j].Name != "gemm" {
					continue
				}
				one := serve(model, code, &routine.Kernels[j])
				text := fmt.Sprint(one, one.operands)
				if known[text] == nil {
					known[text], all = one, append(all, one)
					one.kernel = &routine.Kernels[j]
				}
				known[text].Count++
			}
		}
	}
	return all
}

// serve is a product of a code.
func serve(model string, code *recipe.Code, kernel *recipe.Kernel) *served {
	call := &Call{Kernel: kernel}
	one := &served{Model: model, Form: call.text("form"), M: call.size("m", 0), N: call.size("n", 0), K: call.size("k", 0)}
	for i := range kernel.Operands {
		operand := &kernel.Operands[i]
		tensor := &code.Tensors[operand.Tensor]
		matrix := Matrix{DType: tensor.DType, Rows: tensor.Rows, Columns: tensor.Columns, Stride: tensor.Columns}
		if operand.Rows > 0 {
			matrix.Rows, matrix.Columns, matrix.Address = operand.Rows, operand.Columns, driver.Address(operand.Column*tensor.DType.Bits()/8)
		}
		one.operands = append(one.operands, matrix)
		switch operand.Role {
		case "a":
			one.In = tensor.DType.String()
		case "bias":
			one.Bias = true
		case "add":
			one.Add = true
		case "d":
			one.Out, one.Adds = tensor.DType.String(), operand.Mode == '*'
		}
	}
	return one
}

// server runs products on GPU 0, whose memory is a stretch of random numbers again
// and again.
type server struct {
	t       *testing.T
	kernels *Kernels
	stream  *driver.Stream
	arena   *driver.Arena
	pattern *driver.Pinned
	ends    [2]*driver.Event
}

const (
	arenaBytes = 2 << 30
	// patternBytes is no multiple of anything that rows are.
	patternBytes = 32<<20 + 24
)

func newServer(t *testing.T) *server {
	t.Helper()
	server := &server{t: t, kernels: New(true)}
	server.must(driver.Open())
	devices, err := driver.Devices()
	server.must(err)
	context, err := devices[0].Retain()
	server.must(err)
	server.must(context.Bind())
	server.stream, err = driver.NewStream()
	server.must(err)
	for i := range server.ends {
		server.ends[i], err = driver.NewEvent(true)
		server.must(err)
	}
	server.arena, err = devices[0].Map(arenaBytes)
	server.must(err)
	server.pattern, err = driver.Pin(patternBytes)
	server.must(err)
	random := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < patternBytes; i += 2 {
		binary.LittleEndian.PutUint16(server.pattern.Data[i:], uint16(math.Float32bits(float32(random.NormFloat64()))>>16))
	}
	return server
}

func (server *server) must(err error) {
	server.t.Helper()
	if err != nil {
		server.t.Fatal(err)
	}
}

// fill begins anew, up to so many bytes.
func (server *server) fill(bytes int64) {
	for at := int64(0); at < bytes; at += patternBytes {
		server.must(server.stream.Up(server.arena.Address+driver.Address(at), server.pattern.Data[:min(patternBytes, bytes-at)]))
	}
	server.must(server.stream.Synchronize())
}

// prepare lays a product's matrices one behind the other, and an add that is d's
// tensor where d lies.
func (server *server) prepare(one *served, begins bool) {
	const workspace = 32 << 20
	call := &Call{Kernel: one.kernel, Begins: begins, Kernels: server.kernels, Workspace: blas.Workspace{Address: server.arena.Address, Bytes: workspace}}
	at := server.arena.Address + workspace
	places := make(map[int]driver.Address)
	for i, matrix := range one.operands {
		tensor := one.kernel.Operands[i].Tensor
		if places[tensor] != 0 {
			matrix.Address += places[tensor]
			call.Operands = append(call.Operands, matrix)
			continue
		}
		places[tensor] = at
		matrix.Address += at
		at += driver.Address((matrix.Rows*matrix.Stride*matrix.DType.Bits()/8 + 255) / 256 * 256)
		call.Operands = append(call.Operands, matrix)
	}
	if one.bytes = int64(at - server.arena.Address); one.bytes > arenaBytes {
		server.t.Fatalf("%v takes %d bytes", one, one.bytes)
	}
	launch, err := gemm(call)
	server.must(err)
	one.launch, one.operands = launch, call.Operands
}

// time is the milliseconds that a product takes among so many, one behind the other.
func (server *server) time(one *served, times int) float64 {
	step := &Step{Stream: server.stream}
	server.must(one.launch(step))
	server.must(server.stream.Record(server.ends[0]))
	for range times {
		server.must(one.launch(step))
	}
	server.must(errors.Join(server.stream.Record(server.ends[1]), server.stream.Synchronize()))
	took, err := server.ends[1].Since(server.ends[0])
	server.must(err)
	return took.Seconds() * 1e3 / float64(times)
}

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

// judge runs a product twice, and is a sum over its bytes and the largest error of
// some of its values to float64, less what rounding to bf16 makes, in units of the
// root of Σ(a·b)². What is added to is rounded before, too, by most of the library's
// kernels, as it is in PyTorch.
func (server *server) judge(one *served) (sum uint32, worst float64) {
	call := &Call{Kernel: one.kernel, Operands: one.operands}
	shape, _, err := productOf(call)
	server.must(err)
	d, size := call.matrix("d"), call.matrix("d").DType.Bits()/8
	made, err := driver.Pin(((d.Rows-1)*d.Stride + d.Columns) * size)
	server.must(err)
	for round := range 2 {
		server.fill(one.bytes)
		server.must(errors.Join(one.launch(&Step{Stream: server.stream}), server.stream.Down(made.Data, d.Address), server.stream.Synchronize()))
		hash := crc32.Checksum(made.Data, crc32.MakeTable(crc32.Castagnoli))
		if round > 0 && hash != sum {
			server.t.Errorf("%v: a second run has other bits", one)
		}
		sum = hash
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		i, j := random.Int64N(shape.Rows), random.Int64N(shape.Columns)
		want, square := server.want(call, shape, i, j)
		got := value(made.Data, (i*d.Stride+j)*size, d.DType)
		rounding := 0.
		if d.DType == modelgraph.BF16 {
			rounding = math.Abs(want) / 256
			if one.Add || one.Adds {
				rounding += math.Abs(want) / 256
			}
		}
		worst = max(worst, (math.Abs(got-want)-rounding)/math.Sqrt(square))
	}
	server.must(made.Free())
	return sum, worst
}

// want is a value of a product in float64, and the sum of its terms' squares.
func (server *server) want(call *Call, shape *blas.Shape, i, j int64) (sum, square float64) {
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
		term(server.known(add, i, j))
	} else if call.adds() {
		term(server.known(call.matrix("d"), i, j))
	}
	return sum, square
}

// TestGPUProducts: every product of two models' training steps, in bf16 and in fp32,
// against float64, twice with the same bits. Its sums are those of any process.
func TestGPUProducts(t *testing.T) {
	if os.Getenv("DEVMAP_TEST_GPU") == "" {
		t.Skip("DEVMAP_TEST_GPU is not set")
	}
	server := newServer(t)

	all := append(productsOf(t, "llama-3.2-1b", costmodel.BF16True), productsOf(t, "qwen2.5-3b", costmodel.BF16True)...)
	for _, one := range append(all, productsOf(t, "llama-3.2-1b", costmodel.FP32True)...) {
		server.prepare(one, false)
		sum, worst := server.judge(one)
		t.Logf("%08x %.2g %v", sum, worst, one)
		// Tensor cores cut off what falls behind a sum's last bit. Of products in
		// TF32 the error would be 3e-4.
		limit := 5e-5
		if one.In == modelgraph.F32.String() {
			limit = 2e-5
		}
		if !(worst < limit) {
			t.Errorf("%v: error %.2g", one, worst)
		}
	}
}

func (one *served) String() string {
	return fmt.Sprintf("%s %s %d × %d × %d bias %v add %v adds %v %s to %s", one.Model, one.Form, one.M, one.N, one.K, one.Bias, one.Add, one.Adds, one.In, one.Out)
}

// TestGPUSpeed serves speed.py: it tells the products of the models in
// DEVMAP_SPEED, and then the milliseconds of each that it is asked for, as "7 20":
// the eighth, 20 times.
func TestGPUSpeed(t *testing.T) {
	models := strings.Fields(os.Getenv("DEVMAP_SPEED"))
	if len(models) == 0 {
		t.Skip("DEVMAP_SPEED is not set: speed.py sets it")
	}
	server := newServer(t)
	server.fill(arenaBytes)
	var all []*served
	for _, model := range models {
		all = append(all, productsOf(t, model, costmodel.BF16True)...)
	}
	for _, one := range all {
		server.prepare(one, true)
	}
	fmt.Fprintln(os.Stderr, blas.Library())
	text, err := json.Marshal(all)
	server.must(err)
	fmt.Println(string(text))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var index, times int
		_, err := fmt.Sscan(lines.Text(), &index, &times)
		server.must(err)
		fmt.Println(server.time(all[index], times))
	}
}
