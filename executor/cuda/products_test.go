//go:build cuda && linux && cgo && amd64

package cuda

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/executor/cuda/internal/blas"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestGPUProducts holds cuBLASLt's to float64, and tells what it takes and how long.
// The library keeps the context for as long as the process runs: it comes last.
func TestGPUProducts(t *testing.T) {
	onGPU(t)
	gauge := newGauge(t)
	context := bound0(t)
	if context == nil {
		return
	}
	stream := fixtures.Must(driver.NewStream())(t)
	gauge.tell(t, "a context and a stream")
	device, err := driver.Devices()
	if err != nil {
		t.Error(err)
		return
	}
	arena, err := device[0].Map(1 << 30)
	if err != nil {
		t.Error(err)
		return
	}
	gauge.tell(t, "1 GiB mapped")
	handle, err := blas.New()
	if err != nil {
		t.Error(err)
		return
	}
	t.Log(blas.Library())
	gauge.tell(t, "a cuBLASLt handle")
	workspace := blas.Workspace{Address: arena.Address + 1<<30 - 32<<20, Bytes: 32 << 20}
	for _, dtype := range []modelgraph.DType{modelgraph.F32, modelgraph.BF16} {
		for _, sizes := range [][3]int64{{37, 53, 129}, {1, 127, 64}, {256, 512, 320}, {130, 24, 1000}} {
			for form := range 16 {
				judge(t, &trial{handle, workspace, stream, arena, dtype, sizes[0], sizes[1], sizes[2], form&1 != 0, form&2 != 0, form&4 != 0, form&8 != 0})
			}
		}
	}
	gauge.tell(t, "after products in both types")
	shape := blas.Shape{Rows: 8192, Columns: 8192, Inner: 8192, StrideA: 8192, StrideB: 8192, StrideC: 8192, StrideD: 8192, In: modelgraph.BF16, Out: modelgraph.BF16, TransposeB: true}
	const matrix = 2 << 26
	operands := &blas.Operands{A: arena.Address, B: arena.Address + matrix, C: arena.Address + 2*matrix, D: arena.Address + 2*matrix, Alpha: 1}
	random(t, stream, arena.Address, 2*matrix)
	times := make([]time.Duration, 0, 20)
	for range 20 {
		begin, errBegin := driver.NewEvent(true)
		end, errEnd := driver.NewEvent(true)
		if err := errors.Join(errBegin, errEnd, stream.Record(begin), run(handle, stream, workspace, &shape, operands), stream.Record(end), stream.Synchronize()); err != nil {
			t.Error(err)
			return
		}
		took, err := end.Since(begin)
		times = append(times, took)
		if err := errors.Join(err, begin.Destroy(), end.Destroy()); err != nil {
			t.Error(err)
		}
	}
	t.Logf("8192³ in bf16: %.0f TFLOP/s, last %v of %v", 2*float64(8192*8192*8192)/times[19].Seconds()/1e12, times[19], times[:4])
	small := shape
	small.Rows, small.Columns, small.Inner = 64, 64, 64
	if err := run(handle, stream, workspace, &small, operands); err != nil {
		t.Error(err)
	}
	begin := time.Now()
	for range 1000 {
		err = errors.Join(err, run(handle, stream, workspace, &small, operands))
	}
	t.Logf("a product is given in %v: %v", time.Since(begin)/1000, errors.Join(err, stream.Synchronize()))
	gauge.tell(t, "after large products")
	if err := errors.Join(handle.Close(), arena.Release()); err != nil {
		t.Error(err)
	}
	gauge.tell(t, "arena and handle given back")
	if err := errors.Join(stream.Destroy(), context.Release()); err != nil {
		t.Error(err)
	}
	gauge.tell(t, "the context too, which the library keeps")
	if leaked := driver.Unreleased(); leaked != "" {
		t.Errorf("the process still holds %s", leaked)
	}
}

// run makes a product ready and gives it to the stream.
func run(handle *blas.Handle, stream *driver.Stream, workspace blas.Workspace, shape *blas.Shape, operands *blas.Operands) error {
	product, err := handle.Prepare(workspace, shape, operands)
	if err != nil {
		return err
	}
	return product.Run(stream)
}

// random fills memory with bf16 numbers around 1.
func random(t *testing.T, stream *driver.Stream, at driver.Address, size int) {
	t.Helper()
	pinned, err := driver.Pin(int64(size))
	if err != nil {
		t.Error(err)
		return
	}
	for i := 0; i < size; i += 2 {
		binary.LittleEndian.PutUint16(pinned.Data[i:], uint16(math.Float32bits(float32(rand.NormFloat64()))>>16))
	}
	if err := errors.Join(stream.Up(at, pinned.Data), stream.Synchronize(), pinned.Free()); err != nil {
		t.Error(err)
	}
}

// trial is a product that is judged.
type trial struct {
	handle                 *blas.Handle
	workspace              blas.Workspace
	stream                 *driver.Stream
	arena                  *driver.Arena
	dtype                  modelgraph.DType
	rows, columns, inner   int64
	turnA, turnB, bias, on bool
}

// values draws numbers as the type holds them, and writes them to the GPU.
func (trial *trial) values(t *testing.T, at driver.Address, count int64) []float64 {
	t.Helper()
	size := trial.dtype.Bits() / 8
	pinned := fixtures.Must(driver.Pin(count * size))(t)
	values := make([]float64, count)
	for i := range values {
		bits := math.Float32bits(float32(rand.NormFloat64()))
		if trial.dtype == modelgraph.BF16 {
			bits &^= 0xffff
			binary.LittleEndian.PutUint16(pinned.Data[2*i:], uint16(bits>>16))
		} else {
			binary.LittleEndian.PutUint32(pinned.Data[4*i:], bits)
		}
		values[i] = float64(math.Float32frombits(bits))
	}
	if err := errors.Join(trial.stream.Up(at, pinned.Data), trial.stream.Synchronize(), pinned.Free()); err != nil {
		t.Fatal(err)
	}
	return values
}

func judge(t *testing.T, trial *trial) {
	t.Helper()
	at := trial.arena.Address
	operands := &blas.Operands{A: at, B: at + 8<<20, C: at + 16<<20, D: at + 16<<20, Bias: at + 24<<20, Alpha: 1}
	shape := blas.Shape{
		Rows: trial.rows, Columns: trial.columns, Inner: trial.inner, TransposeA: trial.turnA, TransposeB: trial.turnB,
		StrideA: trial.inner, StrideB: trial.columns, StrideC: trial.columns, StrideD: trial.columns, In: trial.dtype, Out: trial.dtype, Bias: trial.bias,
	}
	if trial.turnA {
		shape.StrideA = trial.rows
	}
	if trial.turnB {
		shape.StrideB = trial.inner
	}
	a := trial.values(t, operands.A, trial.rows*trial.inner)
	b := trial.values(t, operands.B, trial.inner*trial.columns)
	c := trial.values(t, operands.C, trial.rows*trial.columns)
	bias := trial.values(t, operands.Bias, trial.columns)
	if trial.on {
		operands.Beta = 1
	}
	size := trial.dtype.Bits() / 8
	pinned := fixtures.Must(driver.Pin(trial.rows * trial.columns * size))(t)
	if err := errors.Join(run(trial.handle, trial.stream, trial.workspace, &shape, operands), trial.stream.Down(pinned.Data, operands.C), trial.stream.Synchronize()); err != nil {
		t.Errorf("%+v: %v", shape, err)
		return
	}
	var wrong, whole float64
	for i := range trial.rows {
		for j := range trial.columns {
			want := 0.
			for k := range trial.inner {
				atA, atB := i*trial.inner+k, k*trial.columns+j
				if trial.turnA {
					atA = k*trial.rows + i
				}
				if trial.turnB {
					atB = j*trial.inner + k
				}
				want += a[atA] * b[atB]
			}
			if trial.on {
				want += c[i*trial.columns+j]
			}
			if trial.bias {
				want += bias[j]
			}
			n := i*trial.columns + j
			var bits uint32
			if size == 2 {
				bits = uint32(binary.LittleEndian.Uint16(pinned.Data[2*n:])) << 16
			} else {
				bits = binary.LittleEndian.Uint32(pinned.Data[4*n:])
			}
			got := float64(math.Float32frombits(bits))
			wrong, whole = wrong+(got-want)*(got-want), whole+want*want
		}
	}
	limit := 1e-6
	if size == 2 {
		limit = 4e-3
	}
	if err := math.Sqrt(wrong / whole); !(err < limit) {
		t.Errorf("%+v: error %.2g", shape, err)
	}
	if err := pinned.Free(); err != nil {
		t.Error(err)
	}
}
