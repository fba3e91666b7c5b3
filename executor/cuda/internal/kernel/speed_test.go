//go:build cuda && linux && cgo && amd64

package kernel

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// served is a product of a model's training step, as speed.py gets it.
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
	graph := fixtures.Must(load.Model(model, load.Options{BuiltIn: fixtures.Models()}))(t)
	made := fixtures.Must(recipe.Of(graph, &costmodel.Workload{Mode: costmodel.Train, Batch: 4, MicroBatches: 1, Seq: 2048, Precision: precision, Optimizer: costmodel.AdamW}))(t)
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

func (one *served) String() string {
	return fmt.Sprintf("%s %s %d × %d × %d bias %v add %v adds %v %s to %s", one.Model, one.Form, one.M, one.N, one.K, one.Bias, one.Add, one.Adds, one.In, one.Out)
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
	server := &server{t: t, kernels: New(true, 0)}
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

// fill begins again, up to so many bytes.
func (server *server) fill(bytes int64) {
	for at := int64(0); at < bytes; at += patternBytes {
		server.must(server.stream.Up(server.arena.Address+driver.Address(at), server.pattern.Data[:min(patternBytes, bytes-at)]))
	}
	server.must(server.stream.Synchronize())
}

// prepare lays a product's matrices one after another, and an add that is d's
// tensor where d lies.
func (server *server) prepare(one *served, begins bool) {
	const workspace = 32 << 20
	call := &Call{Kernel: one.kernel, Begins: begins, Trains: true, Kernels: server.kernels, Workspace: blas.Workspace{Address: server.arena.Address, Bytes: workspace}}
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

// time is the milliseconds that a product takes among so many, one after another.
func (server *server) time(one *served, times int) float64 {
	step := &Step{Queue: server.stream}
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
	fmt.Println(string(text)) //nolint:forbidigo // speed.py reads it
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var index, times int
		_, err := fmt.Sscan(lines.Text(), &index, &times)
		server.must(err)
		fmt.Println(server.time(all[index], times)) //nolint:forbidigo // speed.py reads it
	}
}
