package kernel_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestTorch: kernels make what torch and Transformers do (testdata/torch/dump.py
// names the functions), bit for bit where those round to bf16.
func TestTorch(t *testing.T) {
	data := fixtures.Must(os.ReadFile("testdata/torch/kernels.json"))(t)
	var golden struct {
		Cases []struct {
			Kernel, Dims string
			Bound        float64
			Operands     []struct {
				Role, Mode    string
				DType         string
				Rows, Columns int64
				Before, After []float64
			}
		}
	}
	if err := json.Unmarshal(data, &golden); err != nil || len(golden.Cases) == 0 {
		t.Fatalf("%d cases: %v", len(golden.Cases), err)
	}
	random := seeded(t)
	for _, want := range golden.Cases {
		trial := newTrial(t, random, want.Kernel, want.Dims)
		for i, operand := range want.Operands {
			dtype := fixtures.Must(modelgraph.ParseDType(operand.DType))(t)
			mode := operand.Mode
			if mode == " " {
				mode = ""
			}
			next := -1
			trial.filled(mode+operand.Role, dtype, operand.Rows, operand.Columns, func() float64 { next++; return operand.Before[next] })
			for j, value := range operand.After {
				trial.judge.Operands[i].Values[j] = float64(float32(value))
			}
		}
		trial.only(t)
		trial.compare(want.Bound, want.Bound)
	}
}
