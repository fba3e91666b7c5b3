package steptime_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// TestCommunicationHSDP: a GPU sends under HSDP as under FSDP in its group of four, and all-reduces
// its quarter of the gradients with the other group: 2·(2−1)/2 of it.
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

// TestCommunicationTorchtitan: without a pipeline, torchtitan gathers a block for forward and for
// backward and reduces its gradients in every micro-batch. It gathers 2 bytes a parameter and
// reduces 4, (4−1)/4 of each.
func TestCommunicationTorchtitan(t *testing.T) {
	const params = 400
	table := &costmodel.Table{
		Workload: costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Runtime: "torchtitan", World: 4, DP: 4, PP: 1, ShardDegree: 4, Precision: costmodel.BF16Mixed},
		Units:    []costmodel.Unit{{Work: costmodel.Work{Weights: params, Trained: params, Block: true}}},
	}
	for microBatches, want := range map[int64]int64{1: 2*(2*params*3/4) + 4*params*3/4, 3: 3 * (2*(2*params*3/4) + 4*params*3/4)} {
		table.Workload.MicroBatches = microBatches
		if got := steptime.Communication(table, &costmodel.Topology{Devices: make([]costmodel.Device, 4)}, []int{0}); got != want {
			t.Errorf("%d micro-batches: %d B, want %d", microBatches, got, want)
		}
	}
}
