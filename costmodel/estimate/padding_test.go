package estimate_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// TestPadding: blocks of the allocator, in training and inference; the sizes
// that a plan reports as weights are the tensors' own.
func TestPadding(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ elements, want int64 }{
		{1, 510},                        // a quantum of 512 B
		{256, 0},                        // just one
		{9*mib/2 + 1, 510},              // from a segment of 20 MiB, which others share
		{43 * mib / 2, mib},             // a segment of 44 MiB with 1 MiB over: not split
		{43*mib/2 - 256, 0},             // more than 1 MiB would remain: split
		{44*mib/2 - 1, 2},               // rounded twice
		{10*mib/2 + 1, 510},             // 10 MiB of 12 and a little: split
		{(11*mib + mib/2) / 2, mib / 2}, // 11.5 MiB of 12
	} {
		g, err := modelgraph.New("m", []modelgraph.Layer{{Name: "a", Op: modelgraph.Linear{In: 1, Out: c.elements}, Params: []modelgraph.Tensor{
			{Name: "weight", Shape: []int64{c.elements}, DType: modelgraph.BF16},
		}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []costmodel.Mode{costmodel.Train, costmodel.Infer, costmodel.Load} {
			want := c.want
			if mode == costmodel.Load {
				want = 0
			}
			u := table(t, g, costmodel.Workload{Mode: mode, Seq: 1, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}).Units[0]
			if u.Padding != want || u.Params != 2*c.elements {
				t.Errorf("%s, %d elements: %d B of weights, %d of padding, want %d", mode, c.elements, u.Params, u.Padding, want)
			}
		}
	}
}

// TestUnusedParameters: Trainer's DDP rebuilds buckets under checkpoints alone, so that
// only then a second set of them may be alive.
func TestUnusedParameters(t *testing.T) {
	g := builtIn(t, "llama-3.2-1b")
	for recompute, second := range map[string]bool{costmodel.RecomputeNone: false, costmodel.RecomputeFull: true} {
		made := table(t, g, costmodel.Workload{
			Preset: "transformers", Mode: costmodel.Train, Strategy: costmodel.DDP, World: 4, Batch: 1, Seq: 128,
			Precision: costmodel.BF16True, Optimizer: costmodel.AdamW, Recompute: recompute,
		})
		if made.Buckets == 0 || made.SecondBuckets > 0 != second || made.Marks == nil {
			t.Errorf("recompute %s: buckets of %d B and again %d B, requests followed: %t", recompute, made.Buckets, made.SecondBuckets, made.Marks != nil)
		}
	}
}

// TestRequestsOfMicroBatches: a table of types has the requests of a step of one micro-batch alone.
func TestRequestsOfMicroBatches(t *testing.T) {
	graph := fixtures.Must(hf.FromConfig("config.json", []byte(`{"model_type":"mpnet","architectures":["MPNetForMaskedLM"],"num_hidden_layers":3,"dtype":"bfloat16"}`)))(t)
	for micro, followed := range map[int64]bool{1: true, 2: false} {
		made := table(t, graph, costmodel.Workload{
			Preset: "accelerate-loop", Mode: costmodel.Train, Strategy: costmodel.DeviceMap, Runtime: "accelerate", OneGPU: true, Batch: 4, MicroBatches: micro, Seq: 256,
			Precision: costmodel.BF16True, Optimizer: costmodel.AdamW,
		})
		if (made.Marks != nil) != followed {
			t.Errorf("%d micro-batches: requests followed: %t", micro, made.Marks != nil)
		}
	}
}

// TestEqualLayers: units of equal parameters cost the same, or the proofs of any
// assignment, which count them, do not end. The second workload follows a whole model.
func TestEqualLayers(t *testing.T) {
	for model, oneGPU := range map[string]bool{"gpt-oss-20b": false, "llama-3.2-3b": true} {
		g := builtIn(t, model)
		mode := costmodel.Infer
		if oneGPU {
			mode = costmodel.Train
		}
		made := table(t, g, costmodel.Workload{
			Preset: "accelerate-loop", Mode: mode, Strategy: costmodel.DeviceMap, Runtime: "accelerate", OneGPU: oneGPU, Batch: 1, Seq: 128,
			Precision: costmodel.BF16True, Optimizer: costmodel.AdamW,
		})
		of := make(map[int64]int64)
		for i := range made.Units {
			unit := &made.Units[i]
			if padding, seen := of[unit.Params]; seen && padding != unit.Padding {
				t.Errorf("%s: %s has %d B of padding, units like it %d", model, unit.Name, unit.Padding, padding)
			}
			of[unit.Params] = unit.Padding
		}
		if len(of) == len(made.Units) {
			t.Errorf("%s: no two units are equal", model)
		}
	}
}
