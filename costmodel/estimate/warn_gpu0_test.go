package estimate_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel/estimate"
)

// TestCheckpointOnGPU0: 4 ranks load a 2 GiB tensor saved from GPU 0; NVML shows whole MiB.
func TestCheckpointOnGPU0(t *testing.T) {
	var before, after, left, other int64
	row := seeds(t)["gpu0_map_location_none"]
	scan(t, row, "none before [%d, %d, 2077, 2077] after [%d, 2077, 2077, 2077]\n   after del+empty_cache [%d,", &before, &other, &after, &left)
	got := estimate.CheckpointOnGPU0(4, 2<<30) >> 20
	if off := got - (after - before); off < -1 || off > 1 {
		t.Errorf("%d MiB predicted, %d measured", got, after-before)
	}
	// What remains when the tensors are gone is the contexts.
	if got := estimate.CheckpointOnGPU0(4, 0) >> 20; got != left-before {
		t.Errorf("%d MiB of contexts predicted, %d measured", got, left-before)
	}
}
