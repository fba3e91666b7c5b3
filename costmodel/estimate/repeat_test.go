package estimate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// albert is a small one of so many layers, all of one group.
func albert(t *testing.T, layers string) *modelgraph.Graph {
	t.Helper()
	graph, err := hf.FromConfig("config.json", []byte(`{"model_type": "albert", "hidden_size": 64, "intermediate_size": 256, "embedding_size": 32, "num_attention_heads": 4,
 "max_position_embeddings": 64, "vocab_size": 100, "num_hidden_layers": `+layers+`}`))
	if err != nil {
		t.Fatal(err)
	}
	return graph
}

// TestRepeatedLayers: a group with 12 runs has its weights once, and saves, computes and moves
// 12-fold.
func TestRepeatedLayers(t *testing.T) {
	const group = "albert.encoder.albert_layer_groups.0"
	units := make(map[string]costmodel.Unit)
	for _, layers := range []string{"1", "12"} {
		graph := albert(t, layers)
		workload := fixtures.Must(estimate.Resolve(graph, costmodel.Workload{Mode: costmodel.Train}))(t)
		table := fixtures.Must(estimate.Table(graph, workload))(t)
		units[layers] = table.Units[slices.IndexFunc(table.Units, func(unit costmodel.Unit) bool { return unit.Name == group })]
	}
	once, often := units["1"], units["12"]
	if once.Params != often.Params || once.OptimizerState != often.OptimizerState || once.Output != often.Output {
		t.Errorf("weights %d and %d, states %d and %d, outputs %d and %d", once.Params, often.Params, once.OptimizerState, often.OptimizerState, once.Output, often.Output)
	}
	if once.FLOPs == 0 || often.FLOPs != 12*once.FLOPs {
		t.Errorf("%g FLOPs of one run, %g of twelve", once.FLOPs, often.FLOPs)
	}
	for name, of := range map[string]func(costmodel.Unit) float64{
		"products": func(unit costmodel.Unit) float64 { return unit.Work.Backward.Products },
		"traffic":  func(unit costmodel.Unit) float64 { return unit.Work.Forward.Traffic },
		"saved":    saved,
	} {
		if a, b := of(once), of(often); a <= 0 || b < 11.99*a || b > 12.01*a {
			t.Errorf("%s: %g of one run, %g of twelve", name, a, b)
		}
	}
	for k := range often.Layers {
		if a, b := once.Layers[k], often.Layers[k]; a.Grads != b.Grads || a.Saved > 0 && b.Forward-b.Saved != a.Forward-a.Saved {
			t.Errorf("%s: gradients %d and %d, transients %d and %d", a.Layer, a.Grads, b.Grads, a.Forward-a.Saved, b.Forward-b.Saved)
		}
	}
}

func saved(unit costmodel.Unit) float64 {
	var sum int64
	for k := range unit.Layers {
		sum += unit.Layers[k].Saved
	}
	return float64(sum)
}

// TestRepeatedCheckpoints: checkpoints of such a group are refused, those of one run are not.
func TestRepeatedCheckpoints(t *testing.T) {
	workload := costmodel.Workload{Mode: costmodel.Train, Recompute: costmodel.RecomputeFull}
	if _, err := estimate.Resolve(albert(t, "12"), workload); err == nil || !strings.Contains(err.Error(), "runs 12 times") {
		t.Error(err)
	}
	if _, err := estimate.Resolve(albert(t, "1"), workload); err != nil {
		t.Errorf("a group that runs once: %v", err)
	}
}
