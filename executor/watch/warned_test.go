package watch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// TestAllowances: every text that a warning is known by is in a warning that plans
// have, and the bytes that this one names are read from it.
func TestAllowances(t *testing.T) {
	t.Parallel()
	train := func(strategy costmodel.Strategy, over costmodel.Workload) costmodel.Workload {
		over.Mode, over.Strategy, over.Batch, over.Seq, over.World = costmodel.Train, strategy, 4, 512, 4
		return over
	}
	warnings, folder := make(map[string]string), t.TempDir()
	for name, text := range map[string]string{
		"config.json": `{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100, "quantization_config": {"quant_method": "quark"}}`,
		"model.json":  `{"format_version": "devmap.model/v1", "name": "toy", "layers": [{"name": "embed", "op": {"kind": "embedding", "vocab": 100, "dim": 64}, "params": [{"name": "weight", "shape": [100, 64], "dtype": "bf16"}]}, {"name": "first", "params": [{"name": "weight", "shape": [64, 64], "dtype": "bf16"}]}]}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for model, workloads := range map[string][]costmodel.Workload{
		"qwen2.5-0.5b": {
			train(costmodel.DDP, costmodel.Workload{}), train(costmodel.FSDP, costmodel.Workload{}), train("zero3", costmodel.Workload{}),
			train(costmodel.DeviceMap, costmodel.Workload{Attention: "flash"}), train(costmodel.DeviceMap, costmodel.Workload{Quantize: "nf4", LoRARank: 8, LoRATargets: []string{"q_proj", "v_proj"}}),
		},
		"opt-13b":     {train(costmodel.DeviceMap, costmodel.Workload{})},
		"config.json": nil, // its graph has the warning
		"model.json":  {train(costmodel.DeviceMap, costmodel.Workload{})},
	} {
		at := filepath.Join("..", "..", "fixtures", "models", model)
		if filepath.Ext(model) == ".json" {
			at = filepath.Join(folder, model)
		}
		graph, err := load.Model(at, load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, warning := range graph.Warnings {
			warnings[warning] = model
		}
		for _, workload := range workloads {
			for _, warning := range warningsOf(t, graph, workload) {
				warnings[warning] = model
			}
		}
	}
	for i := range allowances {
		known := 0
		for warning := range warnings {
			found := allowances[i].text.FindStringSubmatch(warning)
			if found == nil {
				continue
			}
			known++
			if bytes := allowances[i].bytes; bytes != nil && bytes(found, 10<<30) < 1<<20 {
				t.Errorf("%q: %d bytes are read from it", warning, bytes(found, 10<<30))
			}
		}
		if known == 0 {
			t.Errorf("no warning has %q", allowances[i].text)
		}
	}
}

func warningsOf(t *testing.T, graph *modelgraph.Graph, workload costmodel.Workload) []string {
	t.Helper()
	resolved, err := estimate.Resolve(graph, workload)
	if err != nil {
		t.Fatalf("%s %+v: %v", graph.Name, workload, err)
	}
	table, err := estimate.Table(graph, resolved)
	if err != nil {
		t.Fatalf("%s %+v: %v", graph.Name, workload, err)
	}
	var all []string
	for _, warning := range table.Warnings {
		all = append(all, warning.String())
	}
	return all
}

// TestPrinted: a size as it is printed is at least what it was.
func TestPrinted(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{7, 1023, 5000, 3<<20 + 12345, 3<<30 + 1<<22, 170<<30 + 99} {
		got := printed([]string{"", costmodel.Bytes(bytes).String()}, 0)
		if got < bytes-1 || got > bytes+bytes/50+1 {
			t.Errorf("%v is read as %d, want %d", costmodel.Bytes(bytes), got, bytes)
		}
	}
}
