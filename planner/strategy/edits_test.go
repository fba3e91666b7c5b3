package strategy

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
)

// TestSmallerBatches: each smaller batch is divided by its micro-batches: as many as were asked
// for, or the next fewer that divide it.
func TestSmallerBatches(t *testing.T) {
	for _, c := range []struct {
		batch, microBatches int64
		want                [][2]int64 // batch and micro-batches
	}{
		{12, 4, [][2]int64{{6, 3}, {3, 3}, {1, 1}}},
		{20, 7, [][2]int64{{10, 5}, {5, 5}, {2, 2}, {1, 1}}},
		{8, 2, [][2]int64{{4, 2}, {2, 2}, {1, 1}}},
		{6, 0, [][2]int64{{3, 0}, {1, 0}}},
		{1, 1, nil},
	} {
		edits := smallerBatches(c.batch)
		if len(edits) != len(c.want) {
			t.Errorf("%d: %d smaller batches, want %d", c.batch, len(edits), len(c.want))
			continue
		}
		for i, edit := range edits {
			workload := costmodel.Workload{Batch: c.batch, MicroBatches: c.microBatches}
			edit.apply(&workload)
			if got := [2]int64{workload.Batch, workload.MicroBatches}; got != c.want[i] {
				t.Errorf("%d in %d: %v, want %v", c.batch, c.microBatches, got, c.want[i])
			}
		}
	}
}

// TestOptimizerEdit: an 8-bit optimizer is offered instead of AdamW, except for adapters, whose
// states are small.
func TestOptimizerEdit(t *testing.T) {
	for _, c := range []struct {
		workload costmodel.Workload
		want     bool
	}{
		{costmodel.Workload{Mode: costmodel.Train}, true},
		{costmodel.Workload{Mode: costmodel.Train, Optimizer: costmodel.AdamW}, true},
		{costmodel.Workload{Mode: costmodel.Train, Optimizer: costmodel.SGD}, false},
		{costmodel.Workload{Mode: costmodel.Train, LoRARank: 8}, false},
		{costmodel.Workload{Mode: costmodel.Infer}, false},
	} {
		problem := search{comparison: comparison{Problem: planner.Problem{Graph: oneLayer(t), Workload: c.workload}}}
		offered := false
		for _, edit := range problem.edits() {
			workload := c.workload
			edit.apply(&workload)
			offered = offered || workload.Optimizer == "adamw-8bit"
		}
		if offered != c.want {
			t.Errorf("%+v: offered %t", c.workload, offered)
		}
	}
}

func oneLayer(t *testing.T) *modelgraph.Graph {
	t.Helper()
	graph, err := modelgraph.New("small", []modelgraph.Layer{{Name: "a", Params: []modelgraph.Tensor{{Name: "w", Shape: []int64{8}, DType: modelgraph.BF16}}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return graph
}
