package estimate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
)

// declaredModel is one opaque block between an embedding and a head, with the
// declared costs given, taken with 2 sequences of 37 tokens.
func declaredModel(t *testing.T, declared string) *modelgraph.Graph {
	t.Helper()
	graph, err := modelgraph.Read(strings.NewReader(`{"format_version": "devmap.model/v1", "name": "toy",
 "taken": {"batch": 2, "seq": 37, "precision": "bf16-true"}, "layers": [
  {"name": "embed", "op": {"kind": "embedding", "vocab": 64, "dim": 8}, "params": [{"name": "weight", "shape": [64, 8], "dtype": "bf16"}]},
  {"name": "h", "declared": `+declared+`},
  {"name": "head", "op": {"kind": "head", "dim": 8, "vocab": 64}, "params": [{"name": "weight", "shape": [64, 8], "dtype": "bf16"}]}]}`), "toy.json")
	if err != nil {
		t.Fatal(err)
	}
	return graph
}

// TestDeclaredGrowth: declared bytes are those of the planned micro-batch. A warning names bytes
// without growth rules, or from another precision.
func TestDeclaredGrowth(t *testing.T) {
	const (
		grows = `{"activation_bytes": 5, "output_bytes": 3, "growth": {"activation_bytes": {"sequence": 100, "token": 10, "pair": 2}, "output_bytes": {"token": 16}}}`
		still = `{"activation_bytes": 1000, "output_bytes": 1184}`
	)
	for _, c := range []struct {
		declared       string
		batch, seq     int64
		precision      costmodel.Precision
		saved, out     int64
		growth, stored bool // the warning
	}{
		{grows, 2, 37, costmodel.BF16True, 5 + 2*100 + 74*10 + 74*37*2, 3 + 74*16, false, false},
		{grows, 4, 50, costmodel.BF16True, 5 + 4*100 + 200*10 + 200*50*2, 3 + 200*16, false, false},
		{grows, 4, 50, costmodel.FP32True, 5 + 4*100 + 200*10 + 200*50*2, 3 + 200*16, false, true},
		{still, 2, 37, costmodel.BF16True, 1000, 1184, false, false},
		{still, 2, 38, costmodel.BF16True, 1000, 1184, true, false},
		{still, 3, 37, costmodel.FP16True, 1000, 1184, true, true},
	} {
		graph := declaredModel(t, c.declared)
		workload := costmodel.Workload{Mode: costmodel.Train, Batch: c.batch, Seq: c.seq, Precision: c.precision, Strategy: costmodel.DeviceMap}
		workload, err := estimate.Resolve(graph, workload)
		if err != nil {
			t.Fatal(err)
		}
		table, err := estimate.Table(graph, workload)
		if err != nil {
			t.Fatal(err)
		}
		block := table.Units[1]
		if got := block.Layers[0].Saved; got != c.saved || block.Output != c.out {
			t.Errorf("%d × %d: %d bytes kept and %d handed on, want %d and %d", c.batch, c.seq, got, block.Output, c.saved, c.out)
		}
		said := fmt.Sprint(table.Warnings)
		if got := strings.Contains(said, "do not say how they grow"); got != c.growth {
			t.Errorf("%d × %d of %s: says so %v, want %v: %s", c.batch, c.seq, c.declared, got, c.growth, said)
		}
		if got := strings.Contains(said, "were taken in bf16-true"); got != c.stored {
			t.Errorf("%s: says so %v, want %v: %s", c.precision, got, c.stored, said)
		}
	}
}

// TestDeclaredGrowthIsBounded: a plan's sums stay within 64 bits.
func TestDeclaredGrowthIsBounded(t *testing.T) {
	graph := declaredModel(t, `{"growth": {"activation_bytes": {"pair": 1099511627776}}}`)
	workload, err := estimate.Resolve(graph, costmodel.Workload{Mode: costmodel.Train, Seq: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	_, err = estimate.Table(graph, workload)
	if err == nil || !strings.Contains(err.Error(), "more than 2^60 bytes") {
		t.Errorf("%v, want a refusal", err)
	}
}

// TestTapeElsewhere: one note says that a step was followed at other sizes and does not grow.
func TestTapeElsewhere(t *testing.T) {
	const still, grows = `{"activation_bytes": 1000}, "tape": {"train": {"forward": [{"bytes": [4096]}]}}`, `{"activation_bytes": 1000}, "tape": {"train": {"forward": [{"bytes": [0, 0, 4096]}]}}`
	for _, c := range []struct {
		declared string
		seq      int64
		want     string
	}{
		{still, 37, ""},
		{grows, 38, ""},
		{still, 38, "followed with batch=2 seq=37 and does not say how it grows: with batch=2 seq=38,"},
	} {
		graph := declaredModel(t, c.declared)
		workload, err := estimate.Resolve(graph, costmodel.Workload{Mode: costmodel.Train, Batch: 2, Seq: c.seq, Precision: costmodel.BF16True, Strategy: costmodel.DeviceMap, Preset: "accelerate-loop"})
		if err != nil {
			t.Fatal(err)
		}
		table, err := estimate.Table(graph, workload)
		if err != nil {
			t.Fatal(err)
		}
		said := fmt.Sprint(table.Warnings)
		if !strings.Contains(said, c.want) || (c.want == "") == strings.Contains(said, "does not say how it grows") || strings.Contains(said, "declared costs") {
			t.Errorf("--seq %d: %s", c.seq, said)
		}
	}
}
