package steptime_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// TestCommunicationHSDP: what a GPU sends under HSDP is what it sends under
// FSDP in its group of four, and an all-reduce of its quarter of the gradients
// with the other group: 2·(2−1)/2 of it.
func TestCommunicationHSDP(t *testing.T) {
	const params = 400 // of two bytes
	table := &costmodel.Table{
		Workload: costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.HSDP, World: 8, ShardDegree: 4, Precision: costmodel.BF16True},
		Units:    []costmodel.Unit{{Work: costmodel.Work{Weights: params, Trained: params, Block: true}}},
	}
	const group = 3 * (2 * params * 3 / 4) // gathered twice, reduced once
	for microBatches, want := range map[int64]int64{1: group + 2*params/4, 3: 3 * (group + 2*params/4)} {
		table.Workload.MicroBatches = microBatches
		if got := steptime.Communication(table, &costmodel.Topology{Devices: make([]costmodel.Device, 8)}, nil); got != want {
			t.Errorf("%d micro-batches: %d B, want %d", microBatches, got, want)
		}
	}
}
