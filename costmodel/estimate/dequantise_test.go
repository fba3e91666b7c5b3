package estimate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// packedModel is a block of weights stored by a method: fp8 with its scales, or
// mxfp4 in blocks of 16 bytes for 32 values.
func packedModel(t *testing.T, method string) *modelgraph.Graph {
	t.Helper()
	tensor := func(name string, d modelgraph.DType, shape ...int64) modelgraph.Tensor {
		out := fixtures.Must(modelgraph.NewTensor(name, d, shape...))(t)
		return out
	}
	block := modelgraph.Layer{Name: "h.0", Params: []modelgraph.Tensor{
		tensor("q.weight", float8Type, 256, 128), tensor("q.weight_scale_inv", modelgraph.F32, 2, 1), tensor("norm", modelgraph.BF16, 128),
	}}
	if method == "mxfp4" {
		block.Params = []modelgraph.Tensor{
			tensor("up_blocks", uint8Type, 4, 64, 2, 16), tensor("up_scales", uint8Type, 4, 64, 2), tensor("norm", modelgraph.BF16, 128),
		}
	}
	head := modelgraph.Layer{Name: "head", Op: modelgraph.Head{Dim: 8, Vocab: 8}, Params: []modelgraph.Tensor{tensor("weight", modelgraph.BF16, 8, 8)}}
	g := fixtures.Must(modelgraph.New("m", []modelgraph.Layer{block, head}, nil))(t)
	g.Quantized = method
	return g
}

// TestPlainBase: weights of a config alone are trained as bf16, and take another quantised form;
// those of files are refused.
func TestPlainBase(t *testing.T) {
	for _, w := range []costmodel.Workload{
		{Mode: costmodel.Train},
		{Mode: costmodel.Infer, Quantize: "nf4"},
	} {
		g := packedModel(t, "fp8")
		g.Config = []byte("{}")
		w.Precision, w.Seq = costmodel.BF16True, 1
		resolved, err := estimate.Resolve(g, w)
		if err != nil || !resolved.Dequantized {
			t.Errorf("%v: dequantised %t (%v)", w.Mode, resolved.Dequantized, err)
			continue
		}
		if said := table(t, g, resolved).Warnings; len(said) == 0 || !strings.Contains(said[0].String(), "dequantize=True") {
			t.Errorf("%v: %q", w.Mode, said)
		}
		g.Layers[0].Params[0].Parts = []modelgraph.Part{{Name: "q.weight"}}
		if resolved, _ := estimate.Resolve(g, w); resolved.Dequantized {
			t.Errorf("%v: weights of files are dequantised", w.Mode)
		}
	}
	if w, err := estimate.Resolve(packedModel(t, "fp8"), costmodel.Workload{Mode: costmodel.Infer, Precision: costmodel.BF16True}); err != nil || w.Dequantized {
		t.Errorf("inference: %t %v", w.Dequantized, err)
	}
}

// TestDequantizes: the first GPU's capability decides (torch.cuda.get_device_capability()).
func TestDequantizes(t *testing.T) {
	for _, c := range []struct {
		method string
		gpus   []string
		want   bool
	}{
		{"fp8", []string{"a100-80gb"}, true},
		{"fp8", []string{"a10g-24gb"}, true},
		{"fp8", []string{"rtx-3090"}, true},
		{"fp8", []string{"l4-24gb"}, false}, // 8.9 itself has it
		{"fp8", []string{"rtx-4090"}, false},
		{"fp8", []string{"h100-80gb"}, false},
		{"fp8", []string{"b200-180gb"}, false}, // 10.0, not 1.0
		{"fp8", []string{"a100-40gb", "h100-80gb"}, true},
		{"fp8", []string{"h100-80gb", "a100-40gb"}, false},
		{"mxfp4", []string{"a100-80gb"}, false},
		{"gptq", []string{"a100-80gb"}, false},
		{"", []string{"a100-80gb"}, false},
	} {
		var topo costmodel.Topology
		for _, n := range c.gpus {
			gpu := fixtures.Must(catalogue.Find(n))(t)
			topo.Devices = append(topo.Devices, gpu.Device(costmodel.Infer))
		}
		if got := estimate.On(packedModel(t, c.method), costmodel.Workload{}, &topo).Dequantized; got != c.want {
			t.Errorf("%q on %v: %t", c.method, c.gpus, got)
		}
	}
	for capability, want := range map[string]bool{"7.0": true, "7.5": false, "": false} {
		topo := costmodel.Topology{Devices: []costmodel.Device{{ComputeCapability: capability}}}
		if got := estimate.On(packedModel(t, "mxfp4"), costmodel.Workload{}, &topo).Dequantized; got != want {
			t.Errorf("mxfp4 on %q: %t", capability, got)
		}
	}
}

// TestDequantised: two bytes a weight, no scales, gradients and states as of
// any weight; else as stored, and not trained.
func TestDequantised(t *testing.T) {
	const norm = 2 * 128
	for _, c := range []struct {
		method        string
		stored, plain int64
		warned        bool // without being dequantised
	}{{"fp8", 256*128 + 8 + norm, 2*256*128 + norm, false}, {"mxfp4", 4*64*2*16 + 4*64*2 + norm, 2*4*64*2*32 + norm, true}} {
		g := packedModel(t, c.method)
		w := costmodel.Workload{Mode: costmodel.Load}
		tab := table(t, g, w)
		if got := tab.Units[0].Params; got != c.stored || (len(tab.Warnings) > 0) != c.warned {
			t.Errorf("%s: %d B, want %d; %q", c.method, got, c.stored, tab.Warnings)
		}
		w.Dequantized = true
		tab = table(t, g, w)
		if got := tab.Units[0].Params; got != c.plain || len(tab.Warnings) != 1 || !strings.Contains(tab.Warnings[0].String(), "into bf16 as it loads them") {
			t.Errorf("%s dequantised: %d B, want %d; %q", c.method, got, c.plain, tab.Warnings)
		}
		w = costmodel.Workload{Mode: costmodel.Train, Seq: 1, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW, Dequantized: true}
		if u := table(t, g, w).Units[0]; u.OptimizerState != 2*c.plain || timeline.Of(&u).Grads != c.plain {
			t.Errorf("%s dequantised, trained: %d B of states, %d of gradients, want %d and %d", c.method, u.OptimizerState, timeline.Of(&u).Grads, 2*c.plain, c.plain)
		}
		w.Dequantized = false
		if _, err := estimate.Resolve(g, w); err == nil || !strings.HasPrefix(err.Error(), "mode: the weights are stored as "+c.method+"; these take no gradients") {
			t.Errorf("%s, trained: %v", c.method, err)
		}
		w.LoRARank, w.LoRATargets = 16, []string{"all-linear"}
		if _, err := estimate.Resolve(g, w); err == nil || !strings.Contains(err.Error(), "are packed, so that adapters") {
			t.Errorf("%s, adapters: %v", c.method, err)
		}
	}
}

// TestDequantisedKeeps: the graph of the files is not changed.
func TestDequantisedKeeps(t *testing.T) {
	g := packedModel(t, "fp8")
	digest, params := g.Digest(), slices.Clone(g.Layers[0].Params)
	table(t, g, costmodel.Workload{Mode: costmodel.Load, Dequantized: true})
	if g.Digest() != digest || len(g.Layers[0].Params) != len(params) || g.Layers[0].Params[0].DType != float8Type {
		t.Error("the graph of the files is changed")
	}
}

// Types of stored quantised weights.
var uint8Type, float8Type = typeNamed("U8"), typeNamed("F8_E4M3")

// typeNamed is a type by the name that safetensors gives it.
func typeNamed(name string) modelgraph.DType {
	dtype, err := modelgraph.ParseDType(name)
	if err != nil {
		panic(err)
	}
	return dtype
}

// TestConversion checks bytes that Transformers 5.17's own functions allocate on a CPU (torch's
// profiler): 245 a row of 16 bytes of mxfp4, 9 an element of fp8, and of joined experts twice their
// elements.
func TestConversion(t *testing.T) {
	for method, want := range map[string]int64{"mxfp4": 245 * 4 * 64 * 2, "fp8": 9 * 256 * 128} {
		g := packedModel(t, method)
		w := costmodel.Workload{Mode: costmodel.Infer, Strategy: costmodel.DeviceMap, Runtime: value.Accelerate, Precision: costmodel.BF16True, Seq: 1, Batch: 1, MicroBatches: 1, Dequantized: true}
		units := table(t, g, w).Units
		if units[0].Loading != want || units[1].Loading != 0 {
			t.Errorf("%s: %d and %d B, want %d", method, units[0].Loading, units[1].Loading, want)
		}
		w.Dequantized = false
		if got := table(t, g, w).Units[0].Loading; got != 0 {
			t.Errorf("%s as stored: %d B", method, got)
		}
		g.Config = []byte(`{"quantization_config":{"dequantize":true}}`)
		if h100 := (costmodel.Topology{Devices: []costmodel.Device{{ComputeCapability: "9.0"}}}); !estimate.On(g, costmodel.Workload{}, &h100).Dequantized {
			t.Errorf("%s with dequantize: true is kept", method)
		}
	}
	experts := fixtures.Must(modelgraph.NewTensor("e.gate_up_proj", float8Type, 16, 64, 32))(t)
	g := packedModel(t, "fp8")
	g.Layers[0].Params = append(g.Layers[0].Params[2:], experts)
	w := costmodel.Workload{Mode: costmodel.Load, Strategy: costmodel.DeviceMap, Runtime: value.Accelerate, Dequantized: true}
	if got := table(t, g, w).Units[0].Loading; got != 2*16*64*32 {
		t.Errorf("experts: %d B", got)
	}
}
