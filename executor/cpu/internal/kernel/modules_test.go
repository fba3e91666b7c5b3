package kernel_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cpu/internal/kernel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// golden is what testdata/torch/modules.py wrote.
type golden struct {
	Cases   []map[string]json.RawMessage
	Updates []map[string]json.RawMessage
}

func readGolden(t *testing.T) *golden {
	t.Helper()
	text := fixtures.Must(os.ReadFile("testdata/torch/modules.json"))(t)
	read := new(golden)
	if err := json.Unmarshal(text, read); err != nil {
		t.Fatal(err)
	}
	return read
}

func unmarshal[T any](t *testing.T, text json.RawMessage) (value T) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// bits is a matrix of a type whose rows are hexadecimal digits.
func bits(t *testing.T, text json.RawMessage, dtype modelgraph.DType) kernel.Matrix {
	t.Helper()
	rows := unmarshal[[]string](t, text)
	size := int(dtype.Bits() / 8)
	made := kernel.Matrix{DType: dtype, Rows: int64(len(rows)), Columns: int64(len(rows[0]) / 2 / size)}
	made.Stride = made.Columns
	for _, row := range rows {
		data := fixtures.Must(hex.DecodeString(row))(t)
		for at := 0; at < len(data); at += size {
			for i := size - 1; i >= 0; i-- { // digits have the highest first
				made.Data = append(made.Data, data[at+i])
			}
		}
	}
	return made
}

// TestModules: in bf16 norms, gates, embeddings and residuals round where
// Transformers' modules do, so that they make the same bits.
func TestModules(t *testing.T) {
	for _, want := range readGolden(t).Cases {
		line := &recipe.Kernel{Name: unmarshal[string](t, want["kernel"])}
		for name, value := range unmarshal[map[string]string](t, want["dims"]) {
			line.Dims = append(line.Dims, recipe.Dim{Name: name, Value: value})
		}
		call, made := &kernel.Call{Kernel: line}, -1
		for role, text := range want {
			if role == "kernel" || role == "dims" {
				continue
			}
			dtype, mode := modelgraph.BF16, byte(' ')
			if role == "ids" {
				dtype = int32Type
			}
			operand := bits(t, text, dtype)
			if role == "y" || role == "d" {
				made, mode = len(call.Operands), '>'
				clear(operand.Data)
			}
			line.Operands, call.Operands = append(line.Operands, recipe.Operand{Role: role, Mode: mode}), append(call.Operands, operand)
		}
		if err := kernel.Run(call); err != nil {
			t.Fatal(err)
		}
		same(t, line.Name+" "+string(want["dims"]), call.Operands[made], bits(t, want[line.Operands[made].Role], modelgraph.BF16))
	}
}

func same(t *testing.T, what string, got, want kernel.Matrix) {
	t.Helper()
	if bytes.Equal(got.Data, want.Data) {
		return
	}
	others, first := 0, ""
	size := int(want.DType.Bits() / 8)
	for at := 0; at < len(want.Data); at += size {
		if other := string(got.Data[at : at+size]); other != string(want.Data[at:at+size]) {
			others++
			first = hex.EncodeToString([]byte(other)) + ", want " + hex.EncodeToString(want.Data[at:at+size])
		}
	}
	t.Errorf("%s: %d of %d values are others: %s", strings.Join(strings.Fields(what), " "), others, len(want.Data)/size, first)
}

// TestTorchUpdates: three steps in fp32 are torch.optim's, clipped and not,
// to the bit.
func TestTorchUpdates(t *testing.T) {
	for _, want := range readGolden(t).Updates {
		settings := &executor.Optimizer{Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01, Clip: unmarshal[float64](t, want["clip"])}
		name := unmarshal[string](t, want["kernel"])
		if name == "sgd" {
			settings.Rate = 0.1
		}
		weight := bits(t, want["weight"], modelgraph.F32)
		mean, square := zeros(weight), zeros(weight)
		for i, step := range unmarshal[[]map[string]json.RawMessage](t, want["steps"]) {
			total := kernel.Matrix{DType: modelgraph.F32, Rows: 1, Columns: 1, Stride: 1, Data: make([]byte, 4)}
			if text, clipped := step["total"]; clipped {
				total = bits(t, text, modelgraph.F32)
			}
			line := &recipe.Kernel{Name: name, Operands: []recipe.Operand{{Role: "gradient"}, {Role: "total"}, {Role: "weight"}, {Role: "mean"}, {Role: "square"}}}
			call := &kernel.Call{Kernel: line, Step: int64(i + 1), Optimizer: settings, Operands: []kernel.Matrix{bits(t, step["gradient"], modelgraph.F32), total, weight, mean, square}}
			if err := kernel.Run(call); err != nil {
				t.Fatal(err)
			}
			same(t, fmt.Sprint(name, settings.Clip, " weight ", i), weight, bits(t, step["weight"], modelgraph.F32))
			if name == "adamw" {
				same(t, name+" mean", mean, bits(t, step["mean"], modelgraph.F32))
				same(t, name+" square", square, bits(t, step["square"], modelgraph.F32))
			}
		}
	}
}

func zeros(like kernel.Matrix) kernel.Matrix {
	like.Data = make([]byte, len(like.Data))
	return like
}
