package estimate_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// weights is a model of one layer per type, of so many elements.
func weights(t *testing.T, types ...modelgraph.DType) *modelgraph.Graph {
	t.Helper()
	var layers []modelgraph.Layer
	for i, d := range types {
		layers = append(layers, modelgraph.Layer{Name: string(rune('a' + i)), Params: []modelgraph.Tensor{{Name: "w", Shape: []int64{100}, DType: d}}})
	}
	g, err := modelgraph.New("m", layers, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestResolveDefaults(t *testing.T) {
	long, short := weights(t, modelgraph.F16), weights(t, modelgraph.F32)
	long.MaxSeq, short.MaxSeq = 131072, 512
	mixed := weights(t, modelgraph.BF16, modelgraph.F32, uint8Type)
	for _, c := range []struct {
		name string
		g    *modelgraph.Graph
		in   costmodel.Workload
		want costmodel.Workload
	}{
		{"a long model", long, costmodel.Workload{Mode: costmodel.Infer}, costmodel.Workload{Mode: costmodel.Infer, Batch: 1, MicroBatches: 1, Seq: 2048, TargetSeq: 2048, Precision: costmodel.FP16True, StoredTypes: true}},
		{"a short model", short, costmodel.Workload{Mode: costmodel.Train}, costmodel.Workload{Mode: costmodel.Train, Batch: 1, MicroBatches: 1, Seq: 512, TargetSeq: 512, Precision: costmodel.FP32True, StoredTypes: true, Optimizer: costmodel.AdamW, Recompute: costmodel.RecomputeNone}},
		{"most bytes win", mixed, costmodel.Workload{Mode: costmodel.Infer, Seq: 9, TargetSeq: 5}, costmodel.Workload{Mode: costmodel.Infer, Batch: 1, MicroBatches: 1, Seq: 9, TargetSeq: 5, Precision: costmodel.FP32True, StoredTypes: true}},
		{"given stays", long, costmodel.Workload{Mode: costmodel.Train, Batch: 8, MicroBatches: 4, Seq: 64, Precision: costmodel.BF16Mixed}, costmodel.Workload{Mode: costmodel.Train, Batch: 8, MicroBatches: 4, Seq: 64, TargetSeq: 64, Precision: costmodel.BF16Mixed, Optimizer: costmodel.AdamW, Recompute: costmodel.RecomputeNone}},
		{"load has no tokens", long, costmodel.Workload{Mode: costmodel.Load}, costmodel.Workload{Mode: costmodel.Load, Batch: 1, MicroBatches: 1, Precision: costmodel.FP16True, StoredTypes: true}},
	} {
		c.want.Strategy, c.want.Runtime = costmodel.DeviceMap, value.Accelerate
		if got, err := estimate.Resolve(c.g, c.in); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", c.name, err, got, c.want)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	g := weights(t, modelgraph.BF16)
	for _, c := range []struct {
		in   costmodel.Workload
		want string
	}{
		{costmodel.Workload{Batch: -1}, "batch: -1 is not between 0 and 2^32"},
		{costmodel.Workload{Batch: 1<<32 + 1}, "batch: 4294967297 is not between 0 and 2^32"},
		{costmodel.Workload{MicroBatches: -2}, "micro_batches: -2 is not between 0 and 2^32"},
		{costmodel.Workload{Seq: -5}, "seq: -5 is not between 0 and 2^32"},
		{costmodel.Workload{TargetSeq: -5}, "target_seq: -5 is not between 0 and 2^32"},
		{costmodel.Workload{Images: -1}, "images: -1 is not between 0 and 2^32"},
		{costmodel.Workload{NewTokens: -1}, "new_tokens: -1 is not between 0 and 2^32"},
		{costmodel.Workload{Batch: 12, MicroBatches: 5}, "micro_batches: 5 does not divide the batch of 12 (4 and 6 do)"},
		{costmodel.Workload{Batch: 1 << 20, Seq: 1 << 13}, "batch: 1048576 sequences of 8192 tokens are more than 2^32 tokens"},
		{costmodel.Workload{Batch: 1 << 10, Seq: 1 << 23}, "seq: 1024 sequences of 8388608 tokens are more than 2^32 tokens"},
		{costmodel.Workload{NewTokens: 5}, "new_tokens: only mode=infer generates tokens"},
	} {
		c.in.Mode = costmodel.Train
		_, err := estimate.Resolve(g, c.in)
		var bad *costmodel.FieldError
		if !errors.As(err, &bad) || err.Error() != c.want {
			t.Errorf("%+v: error %v, want %s", c.in, err, c.want)
		}
	}
	if _, err := estimate.Table(g, costmodel.Workload{Mode: costmodel.Train}); err == nil {
		t.Error("a workload that is not resolved is taken")
	}
}

// TestResolveUnknown: a value that is not known would count as another one.
func TestResolveUnknown(t *testing.T) {
	g := weights(t, modelgraph.BF16)
	for want, workload := range map[string]costmodel.Workload{
		`mode: "dream" is unknown (known: infer, train, load, serve)`: {Mode: "dream"},
		`optimizer: "adamm" is unknown (known: adamw, `:               {Mode: costmodel.Train, Optimizer: "adamm"},
		`recompute: "ful" is unknown (known: none, `:                  {Mode: costmodel.Train, Recompute: "ful"},
		`precision: "bf16" is unknown (known: bf16-true, `:            {Precision: "bf16"},
		`attention: "fast" is unknown (known: sdpa, `:                 {Attention: "fast"},
		`schedule: "dual" is unknown (known: 1f1b, gpipe, int`:        {Strategy: costmodel.Pipeline, World: 2, Schedule: "dual"},
	} {
		if _, err := estimate.Resolve(g, workload); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	resolved, err := estimate.Resolve(g, costmodel.Workload{Mode: costmodel.Train})
	if err != nil {
		t.Fatal(err)
	}
	resolved.Optimizer = "adamm"
	if _, err := estimate.Table(g, resolved); err == nil || !strings.HasPrefix(err.Error(), `optimizer: "adamm" is unknown`) {
		t.Errorf("a table of an unknown optimizer: %v", err)
	}
	if workload, err := estimate.Resolve(g, costmodel.Workload{Quantize: "off"}); err != nil || workload.Quantize != "" {
		t.Errorf("off is %q (%v)", workload.Quantize, err)
	}
}

// TestOverflow: sizes with a product beyond int64 are refused.
func TestOverflow(t *testing.T) {
	nothing := modelgraph.NotDeclared()
	nothing.ParamsBytes = 0
	for _, c := range []struct {
		layer modelgraph.Layer
		w     costmodel.Workload
		want  string
	}{
		{
			modelgraph.Layer{Name: "a", Declared: &nothing, Op: modelgraph.MLP{Dim: 1 << 40, Hidden: 1 << 40}},
			costmodel.Workload{Seq: 1 << 20},
			`seq: with 1048576 tokens the layers up to "a" would take more than 2^60 bytes`,
		},
		{
			modelgraph.Layer{Name: "a", Stream: modelgraph.Stream{Kind: modelgraph.Fixed, Tokens: 1 << 40}},
			costmodel.Workload{},
			`batch: layer "a" would see 1.1e+12 tokens, more than 2^32`,
		},
		{
			modelgraph.Layer{Name: "a", Stream: modelgraph.Stream{Kind: modelgraph.Image, Tokens: 256}},
			costmodel.Workload{Images: 1 << 32},
			`images: layer "a" would see 1.1e+12 tokens, more than 2^32`,
		},
		{
			modelgraph.Layer{Name: "a", Declared: &nothing, Op: modelgraph.Attention{Dim: 64, Heads: 1 << 20, KVHeads: 1, HeadDim: 1, Eager: true}},
			costmodel.Workload{Seq: 1 << 30},
			`seq: with 1073741824 tokens the layers up to "a" would take more than 2^60 bytes`,
		},
	} {
		g, err := modelgraph.New("m", []modelgraph.Layer{c.layer}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c.w.Mode = range []costmodel.Mode{costmodel.Train, costmodel.Infer} {
			w, err := estimate.Resolve(g, c.w)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = estimate.Table(g, w); err == nil || err.Error() != c.want {
				t.Errorf("%s: error %v, want %s", c.w.Mode, err, c.want)
			}
		}
	}
}

// TestResolveOfModel: resolving a workload refuses what the model rules out.
func TestResolveOfModel(t *testing.T) {
	program := *small()
	program.Family = "openpi_pi0"
	eight, err := hf.FromConfig("config.json", []byte(`{"model_type":"llama","num_hidden_layers":2,"dtype":"float8_e4m3fn"}`))
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]struct {
		graph    *modelgraph.Graph
		workload costmodel.Workload
	}{
		"attention: flash-attn computes in 16 bits alone": {small(), costmodel.Workload{Attention: value.FlashAttention, Precision: costmodel.FP32True}},
		"precision: the engine builds modules of its own": {eight, costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.FSDP, Preset: "torchtitan", World: 2}},
		"runtime:  is a JAX program of OpenPI":            {&program, costmodel.Workload{}},
	} {
		if _, err := estimate.Resolve(c.graph, c.workload); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A module with an unfinished forward can only be loaded.
func TestStoppedForward(t *testing.T) {
	graph := builtIn(t, "llama-3.2-1b")
	graph.Warnings = append(graph.Warnings, "the forward stopped before its end (a test)")
	for mode, refused := range map[costmodel.Mode]bool{costmodel.Load: false, costmodel.Infer: true, costmodel.Train: true} {
		if _, err := estimate.Resolve(graph, costmodel.Workload{Mode: mode}); (err != nil) != refused {
			t.Errorf("%s: %v", mode, err)
		}
	}
}
