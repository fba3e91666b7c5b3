package estimate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

func builtIn(t *testing.T, model string) *modelgraph.Graph {
	t.Helper()
	graph := fixtures.Must(load.Model(model, load.Options{BuiltIn: fixtures.Models()}))(t)
	return graph
}

// TestDegreesRefused: impossible stages of several GPUs are refused, with the nearest possible.
func TestDegreesRefused(t *testing.T) {
	for name, row := range map[string]struct {
		model string
		set   func(*costmodel.Workload)
		want  []string
	}{
		"product":   {"llama-3.1-8b", func(w *costmodel.Workload) { w.DP, w.TP = 3, 2 }, []string{"dp:", "3 × 2 GPUs do not fill 8", "of dp, 2 and 4 do"}},
		"too many":  {"llama-3.1-8b", func(w *costmodel.Workload) { w.TP = 16 }, []string{"tp:", "1 × 16", "8 does"}},
		"heads":     {"qwen2.5-3b", func(w *costmodel.Workload) { w.TP = 4 }, []string{"tp:", "2 KV heads", "4 GPUs", "2 does"}},
		"fused":     {"phi-3-mini", func(w *costmodel.Workload) { w.TP = 2 }, []string{"tp:", "one matrix for q, k and v"}},
		"experts":   {"mixtral-8x7b", func(w *costmodel.Workload) { w.TP = 2 }, []string{"tp:", "mlp", "an operation of another kind"}},
		"strategy":  {"llama-3.1-8b", func(w *costmodel.Workload) { w.Strategy, w.DP = costmodel.FSDP, 2 }, []string{"dp:", "a pipeline's"}},
		"engine":    {"llama-3.1-8b", func(w *costmodel.Workload) { w.Runtime, w.TP = costmodel.Devmap, 2 }, []string{"tp:", "is one GPU"}},
		"mixed":     {"llama-3.1-8b", func(w *costmodel.Workload) { w.Precision, w.TP = costmodel.BF16Mixed, 2 }, []string{"precision:", "bf16-true"}},
		"inference": {"llama-3.1-8b", func(w *costmodel.Workload) { w.Mode, w.DP = costmodel.Infer, 2 }, []string{"dp:", "requests of its own"}},
		"recomputed": {"llama-3.1-8b", func(w *costmodel.Workload) {
			w.Mode, w.Strategy, w.Recompute = costmodel.Infer, costmodel.DeviceMap, "auto"
		}, []string{"recompute:", "mode=train"}},
		"no stages":   {"llama-3.1-8b", func(w *costmodel.Workload) { w.Strategy, w.Recompute = costmodel.DeviceMap, "auto" }, []string{"recompute:", "strategy=pipeline", "strategy=fsdp"}},
		"interleaved": {"llama-3.1-8b", func(w *costmodel.Workload) { w.Schedule, w.DP = costmodel.Interleaved, 2 }, []string{"dp:", "schedule=1f1b"}},
		"shards":      {"llama-3.1-8b", func(w *costmodel.Workload) { w.DP, w.ShardDegree = 4, 3 }, []string{"shard_degree:", "3 does not divide the 4 replicas", "2 and 4 do"}},
		"no replicas": {"llama-3.1-8b", func(w *costmodel.Workload) { w.ShardDegree = 2 }, []string{"shard_degree:", "cuts no parameters"}},
	} {
		t.Run(name, func(t *testing.T) {
			workload := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, World: 8, Batch: 8, MicroBatches: 8, Seq: 512}
			row.set(&workload)
			_, err := estimate.Resolve(builtIn(t, row.model), workload)
			var field *costmodel.FieldError
			if !errors.As(err, &field) {
				t.Fatalf("%v", err)
			}
			for _, want := range row.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

// TestTensorParts: each of t GPUs that share matrices has a t-th of each, whole norms, and
// Korthikanti et al.'s part of a block's activations (arXiv 2205.05198, table 2).
func TestTensorParts(t *testing.T) {
	graph := builtIn(t, "llama-3.1-8b")
	costs := func(tensor costmodel.Degree) *costmodel.Table {
		workload, err := estimate.Resolve(graph, costmodel.Workload{
			Mode: costmodel.Train, Strategy: costmodel.Pipeline, World: 8, TP: tensor, Batch: 8, MicroBatches: 8, Seq: 2048, Precision: costmodel.BF16True,
		})
		if err != nil {
			t.Fatal(err)
		}
		table := fixtures.Must(estimate.Table(graph, workload))(t)
		return table
	}
	const hidden, heads, queries, keys, width, vocab, tokens = 4096, 32, 4096, 1024, 14336, 128256, 2048
	for _, tensor := range []costmodel.Degree{1, 2, 4, 8} {
		table, parts := costs(tensor), tensor.Count()
		block := &table.Units[1]
		matrices := int64(hidden*(2*queries+2*keys) + 3*hidden*width)
		if want := 2 * (matrices/parts + 2*hidden); block.Params != want {
			t.Errorf("tp %v: a block has %d B of parameters, want %d", tensor, block.Params, want)
		}
		if want := 2 * int64(hidden*vocab) / parts; table.Units[0].Params != want {
			t.Errorf("tp %v: the embedding has %d B, want %d", tensor, table.Units[0].Params, want)
		}
		var saved int64
		for i := range block.Layers {
			saved += block.Layers[i].Saved
		}
		// Norms 2 × (8h + 4); q, k, v, the output and log-sum-exp; gate, silu,
		// up and their product; the kernel's seed and offset.
		want := tokens*(2*(8*hidden+4)+(2*(2*queries+2*keys)+4*heads+8*width)/parts) + 1024
		if math := saved - want; math < 0 || math > want/200 { // the allocator's rounding
			t.Errorf("tp %v: a block saves %d B, want %d", tensor, saved, want)
		}
	}
}

// TestMegatronFloat8: two 8-bit copies of each linear weight of the blocks on a GPU, half
// of what products keep of their inputs, and a band.
func TestMegatronFloat8(t *testing.T) {
	const config = `{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 2, "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 4096, "torch_dtype": "bfloat16", "tie_word_embeddings": false}`
	graph := fixtures.Must(hf.FromConfig("config.json", []byte(config)))(t)
	table := func(float8 string) *costmodel.Table {
		work := fixtures.Must(estimate.Resolve(graph, costmodel.Workload{Mode: costmodel.Train, Runtime: "megatron", Strategy: costmodel.Pipeline, World: 2, TP: 2, PP: 1, DP: 1, Batch: 1, Seq: 1024, Float8: float8}))(t)
		out := fixtures.Must(estimate.Table(graph, work))(t)
		return out
	}
	plain, narrow := table(""), table("tensorwise")
	const weights = (1024*(16+8+8)*64 + 16*64*1024 + 3*1024*2816) / 2
	if more := narrow.Units[1].Buffers - plain.Units[1].Buffers; more != 2*weights || narrow.Band != .1 || plain.Band != 0 {
		t.Errorf("%d bytes more, bands %v and %v; want %d", more, plain.Band, narrow.Band, 2*weights)
	}
	var less int64
	for k := range plain.Units[1].Layers {
		less += plain.Units[1].Layers[k].Saved - narrow.Units[1].Layers[k].Saved
	}
	if want := int64(1024 * (2*1024 + 2816/2)); less != want { // two norms' outputs, and the activation's
		t.Errorf("%d bytes less are kept, want %d", less, want)
	}
}
