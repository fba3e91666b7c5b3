package costmodel_test

import (
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// stagesOn is a pipeline's table of a form on so many GPUs.
func stagesOn(gpus int64, dp, tp string) *costmodel.Table {
	table := &costmodel.Table{Workload: costmodel.Workload{Strategy: costmodel.Pipeline, World: gpus}}
	if table.Workload.DP.Set(dp) != nil || table.Workload.TP.Set(tp) != nil {
		panic("no degrees")
	}
	return table
}

// TestFolded: a stage has its GPUs' smallest budget and slowest rate, and rings as slow as their
// slowest link: GPUs that share matrices in a host, replicas between hosts.
func TestFolded(t *testing.T) {
	gpu := func(host string, capacity int64) costmodel.Device {
		return costmodel.Device{
			Name: "g", CapacityBytes: capacity, FLOPS: 100, Host: host,
			Rates: costmodel.Rates{CollectiveBytesPerSecond: 400, LinkBytesPerSecond: 500, HostBytesPerSecond: 50, CollectiveSeconds: 2},
		}
	}
	topo := &costmodel.Topology{Devices: []costmodel.Device{gpu("a", 80), gpu("a", 70), gpu("b", 80), gpu("b", 80), gpu("c", 80), gpu("c", 80), gpu("c", 80), gpu("c", 60)}}
	topo.Devices[5].FLOPS = 90
	table := stagesOn(8, "2", "2")
	folded := table.Folded(topo)
	if !slices.Equal(folded.Starts, []int{0, 4}) || len(folded.Devices) != 2 {
		t.Fatalf("%+v", folded)
	}
	first, second := &folded.Devices[0], &folded.Devices[1]
	if first.Budget() != 70 || second.Budget() != 60 || second.FLOPS != 90 {
		t.Errorf("budgets %d and %d, %v FLOP/s", first.Budget(), second.Budget(), second.FLOPS)
	}
	if first.Tensor.BytesPerSecond != 400 || first.Data.BytesPerSecond != 50 || second.Data.BytesPerSecond != 400 {
		t.Errorf("rings of %v, %v and %v B/s", first.Tensor.BytesPerSecond, first.Data.BytesPerSecond, second.Data.BytesPerSecond)
	}
	if again := table.Folded(folded); again != folded {
		t.Error("what is folded is folded again")
	}
	if same := stagesOn(8, "1", "1").Folded(topo); same != topo {
		t.Error("stages of one GPU are folded")
	}
}

// TestFoldedLinks: stages are linked if all GPUs are to those in their places, at the slowest's
// speed.
func TestFoldedLinks(t *testing.T) {
	devices := slices.Repeat([]costmodel.Device{{Name: "g", CapacityBytes: 80}}, 6)
	topo := &costmodel.Topology{Devices: devices, Links: []costmodel.Link{
		{From: 0, To: 1, BytesPerSecond: 9, LatencySeconds: 3}, // within a stage
		{From: 0, To: 2, BytesPerSecond: 7, LatencySeconds: 1},
		{From: 1, To: 3, BytesPerSecond: 5, LatencySeconds: 2},
		{From: 2, To: 4, BytesPerSecond: 7},
		{From: 3, To: 4, BytesPerSecond: 7}, // 3 has none to 5
	}}
	folded := stagesOn(6, "1", "2").Folded(topo)
	if want := []costmodel.Link{{From: 0, To: 1, BytesPerSecond: 5, LatencySeconds: 2}}; !slices.Equal(folded.Links, want) {
		t.Errorf("%+v, want %+v", folded.Links, want)
	}
	if ring := folded.Devices[0].Tensor; ring.BytesPerSecond != 9 || ring.Seconds != 3 {
		t.Errorf("the first stage's ring: %+v", ring)
	}
}
