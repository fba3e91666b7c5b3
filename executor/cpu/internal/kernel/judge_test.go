package kernel_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/cpu/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/recipetest"
	"github.com/devmap-dev/devmap/modelgraph"
)

var seedFlag = flag.Uint64("seed", 12, "of the numbers that kernels are tried on; 0: of the clock")

// seeded is a source of numbers: the same ones every time, so that what passes
// keeps passing, and others with -seed. A test that fails logs the seed.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("-seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 12))
}

// trial is a kernel on bytes, and the same in float64.
type trial struct {
	t      *testing.T
	random *rand.Rand
	kernel recipe.Kernel
	call   kernel.Call
	judge  recipetest.Call
	tests  []operand
	// least is the smallest size that values count as. If exact values are 0, differences of equals
	// are as near as their terms.
	least float64
}

// operand is a matrix in the middle of a tensor, which is poison around it.
type operand struct {
	kernel.Matrix
	bytes  []byte
	before int64 // values
}

// newTrial is of a kernel with dims as its line has them.
func newTrial(t *testing.T, random *rand.Rand, name, dims string) *trial {
	t.Helper()
	trial := &trial{t: t, random: random, kernel: recipe.Kernel{Name: name}}
	for _, word := range strings.Fields(dims) {
		key, value, _ := strings.Cut(word, "=")
		trial.kernel.Dims = append(trial.kernel.Dims, recipe.Dim{Name: key, Value: value})
	}
	trial.call.Kernel, trial.judge.Kernel = &trial.kernel, &trial.kernel
	return trial
}

// with adds an operand of normal numbers times spread, as a part of a wider tensor. The role is
// "+role" if it is changed, ">role" if it is written.
func (trial *trial) with(role string, dtype modelgraph.DType, rows, columns int64, spread float64) *trial {
	return trial.filled(role, dtype, rows, columns, func() float64 { return spread * trial.random.NormFloat64() })
}

func (trial *trial) filled(role string, dtype modelgraph.DType, rows, columns int64, value func() float64) *trial {
	mode, name := byte(' '), role
	if strings.ContainsAny(role[:1], ">+*") {
		mode, name = role[0], role[1:]
	}
	size := dtype.Bits() / 8
	before, behind := trial.random.Int64N(3), trial.random.Int64N(3)
	stride := columns + before + behind
	made := operand{before: before, bytes: make([]byte, rows*stride*size)}
	for i := range made.bytes {
		made.bytes[i] = 0xFF
	}
	made.Matrix = kernel.Matrix{DType: dtype, Rows: rows, Columns: columns, Stride: stride, Data: made.bytes[before*size:]}
	twin := recipetest.Matrix{Values: make([]float64, rows*columns), Rows: rows, Columns: columns, Stride: columns}
	for i := range rows {
		for j := range columns {
			*twin.At(i, j) = math.NaN()
			if mode != '>' {
				made.set(i, j, value())
				*twin.At(i, j) = made.at(i, j)
			}
		}
	}
	trial.kernel.Operands = append(trial.kernel.Operands, recipe.Operand{Role: name, Mode: mode})
	trial.call.Operands = append(trial.call.Operands, made.Matrix)
	trial.judge.Operands = append(trial.judge.Operands, twin)
	trial.tests = append(trial.tests, made)
	return trial
}

func (operand *operand) set(i, j int64, value float64) {
	if operand.DType.Bits() == 32 && operand.DType != modelgraph.F32 {
		operand.SetInt(i, j, int32(value))
		return
	}
	operand.Store(i, j, []float32{float32(value)})
}

func (operand *operand) at(i, j int64) float64 {
	if operand.DType.Bits() == 32 && operand.DType != modelgraph.F32 {
		return float64(operand.Int(i, j))
	}
	var value [1]float32
	operand.Load(i, j, value[:])
	return float64(value[0])
}

// run carries both out and compares what they wrote: ‖err‖/‖ref‖ below a bound
// that is the type's.
func (trial *trial) run(fp32, bf16 float64) *trial {
	trial.t.Helper()
	if err := kernel.Run(&trial.call); err != nil {
		trial.t.Fatalf("%s: %v", trial.line(), err)
	}
	trial.judge.Run(trial.t)
	trial.compare(fp32, bf16)
	return trial
}

// compare compares what the kernel left with what the judge did.
func (trial *trial) compare(fp32, bf16 float64) {
	trial.t.Helper()
	for i := range trial.tests {
		trial.around(i)
		mode := trial.kernel.Operands[i].Mode
		bound := fp32
		if trial.tests[i].DType == modelgraph.BF16 || trial.tests[0].DType == modelgraph.BF16 {
			bound = bf16
		}
		if mode == ' ' {
			bound = 0
		}
		if got := trial.distance(i); !(got <= bound) {
			trial.t.Fatalf("%s: %s is %.3g from what is right, want %.3g at most", trial.line(), trial.kernel.Operands[i].Role, got, bound)
		}
	}
}

// distance is ‖err‖/‖ref‖ of an operand.
func (trial *trial) distance(i int) float64 {
	faults, size := 0., 0.
	for row := range trial.tests[i].Rows {
		for column := range trial.tests[i].Columns {
			want := *trial.judge.Operands[i].At(row, column)
			got := trial.tests[i].at(row, column)
			if got == want && math.IsInf(got, -1) {
				continue
			}
			fault := got - want
			faults, size = faults+fault*fault, size+want*want
		}
	}
	if faults == 0 {
		return 0
	}
	return math.Sqrt(faults / max(size, trial.least*trial.least*float64(trial.tests[i].Rows*trial.tests[i].Columns)))
}

// around holds a kernel to its operands: around them there is poison.
func (trial *trial) around(i int) {
	test := &trial.tests[i]
	size := test.DType.Bits() / 8
	width := test.Stride * size
	for begin := int64(0); begin < int64(len(test.bytes)); begin += width {
		row := test.bytes[begin : begin+width]
		for _, edge := range [][]byte{row[:test.before*size], row[(test.before+test.Columns)*size:]} {
			if written := bytes.Trim(edge, "\xFF"); len(written) > 0 {
				trial.t.Fatalf("%s: row %d is written outside of %s", trial.line(), begin/width, trial.kernel.Operands[i].Role)
			}
		}
	}
}

func (trial *trial) line() string {
	line := trial.kernel.Name
	for _, dim := range trial.kernel.Dims {
		line += fmt.Sprintf(" %s=%s", dim.Name, dim.Value)
	}
	return line + fmt.Sprint(" ", trial.tests[0].DType)
}

// bits are all that a trial's kernel left.
func (trial *trial) bits() string {
	var bits strings.Builder
	for i := range trial.tests {
		_ = binary.Write(&bits, binary.LittleEndian, trial.tests[i].bytes)
	}
	return bits.String()
}

var dtypes = []modelgraph.DType{modelgraph.F32, modelgraph.BF16}

// same adds an operand that another trial has, as its kernel left it.
func (trial *trial) same(role string, other *trial, i int) *trial {
	test := &other.tests[i]
	at := int64(0)
	return trial.filled(role, test.DType, test.Rows, test.Columns, func() float64 {
		at++
		return test.at((at-1)/test.Columns, (at-1)%test.Columns)
	})
}

// only runs the kernel alone.
func (trial *trial) only(tb testing.TB) {
	tb.Helper()
	if err := kernel.Run(&trial.call); err != nil {
		tb.Fatal(err)
	}
}
