//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cpu"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/modelgraph"
)

// spoiled are weights. The last value of one parameter is a NaN or an infinity.
type spoiled struct {
	weights.Source
	name  string
	value uint16 // the upper half of an fp32
}

func (spoiled *spoiled) Stream(ctx context.Context, name string, dtype modelgraph.DType, emit func(chunk []byte) error) error {
	return spoiled.Source.Stream(ctx, name, dtype, func(chunk []byte) error {
		if name == spoiled.name {
			chunk[len(chunk)-2], chunk[len(chunk)-1] = byte(spoiled.value), byte(spoiled.value>>8)
		}
		return emit(chunk)
	})
}

// found returns what a GPU reports as a processor does. A GPU searches a decode at the end of its
// graph: it names the last unit.
func found(report string) string {
	if before, _, decodes := strings.Cut(report, ": decode of "); decodes {
		return before
	}
	return report
}

// TestGPUFinite: a GPU finds a NaN or an infinity as a processor does, and reports the
// same error, on any number of devices.
func TestGPUFinite(t *testing.T) {
	onGPU(t)
	holding(t)
	train := costmodel.Workload{Mode: costmodel.Train, Precision: costmodel.FP32True, Optimizer: costmodel.AdamW}
	brain, mixed, infer := train, train, train
	brain.Precision, mixed.Precision = costmodel.BF16True, costmodel.BF16Mixed
	infer.Mode, infer.Optimizer = costmodel.Infer, ""
	generate := infer
	generate.NewTokens, generate.Precision = 3, costmodel.BF16True
	const nan, inf, less = 0x7fc0, 0x7f80, 0xff80
	for _, test := range []struct {
		family, name string
		value        uint16
		wanted       costmodel.Workload
		rate         float64
	}{
		{"llama", "model.layers.1.mlp.up_proj.weight", nan, infer, 0},
		{"llama", "model.layers.1.mlp.up_proj.weight", inf, train, 0},
		{"llama", "model.layers.0.input_layernorm.weight", nan, brain, 0},
		{"llama", "model.layers.0.input_layernorm.weight", nan, mixed, 0},
		{"llama", "lm_head.weight", nan, infer, 0},
		{"llama", "lm_head.weight", less, generate, 0},
		{"llama", "lm_head.weight", nan, train, 0},
		{"gpt2", "transformer.h.1.mlp.c_proj.bias", inf, brain, 0},
		{"gpt2", "transformer.wpe.weight", nan, generate, 0},
		{"gemma3_text", "model.layers.4.self_attn.q_norm.weight", nan, train, 0},
		{"llama", "", 0, train, 3e38},
		{"llama", "", 0, brain, 3e38},
		{"llama", "", 0, mixed, 3e38},
	} {
		graph, err := backendtest.Graph(backendtest.Families[test.family])
		if err != nil {
			t.Fatal(err)
		}
		test.wanted.Seq = 7
		if test.name == "transformer.wpe.weight" { // its last row is of the last position
			test.wanted.Seq = 29 // and three tokens behind them
		}
		tell := func(backend executor.Backend, devices int) string {
			job, err := backendtest.Cut{Devices: devices, Schedule: costmodel.OneFOneB, MicroBatches: 2}.Job(graph, test.wanted)
			if err != nil {
				t.Fatal(err)
			}
			settings := &executor.Settings{Steps: 2, Seed: 3, Weights: &spoiled{weights.Random(graph, 3), test.name, test.value}}
			if test.wanted.Mode == costmodel.Train {
				settings.Optimizer = executor.Optimizer{Rate: test.rate, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
			}
			_, err = executor.Run(context.Background(), backend, job, settings)
			if value := (*executor.ValueError)(nil); !errors.As(err, &value) {
				t.Errorf("%s %s %s on %s: %v", test.family, test.name, test.wanted.Mode, backend.Name(), err)
				return ""
			}
			return err.Error()
		}
		want := tell(cpu.New(), 1)
		t.Log(want)
		for devices := range 3 {
			if got := tell(shared{}, devices+1); found(got) != found(want) {
				t.Errorf("%s %s %s on %d devices: %q, want %q", test.family, test.name, test.wanted.Mode, devices+1, got, want)
			}
		}
	}
}
