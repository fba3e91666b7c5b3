package costmodel_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestOverheadPeers: a rank of a pipeline holds NCCL's memory for each of its
// neighbours. Two ranks are one pair, in a ring too.
func TestOverheadPeers(t *testing.T) {
	const each = 10
	for _, c := range []struct {
		world int64
		ring  bool
		peers []int64 // by rank
	}{
		{1, false, []int64{0}},
		{2, false, []int64{1, 1}},
		{2, true, []int64{1, 1}},
		{3, false, []int64{1, 2, 1}},
		{3, true, []int64{2, 2, 2}},
	} {
		table := costmodel.Table{Workload: costmodel.Workload{World: c.world}, Comm: costmodel.Comm{World: 1000, Peer: each, Ring: c.ring}}
		for rank, peers := range c.peers {
			if got, want := table.Overhead(rank, &costmodel.Device{}), 1000+each*peers; got != want {
				t.Errorf("%d ranks, ring %t, rank %d: %d B, want %d", c.world, c.ring, rank, got, want)
			}
		}
	}
}

// TestOverheadContext: the engine's context replaces the catalogue's, but not a device's own.
func TestOverheadContext(t *testing.T) {
	table := costmodel.Table{Workload: costmodel.Workload{World: 1}, Comm: costmodel.Comm{Contexts: map[string][2]int64{"9.0": {500, 300}}}}
	for _, c := range []struct {
		capability    string
		context, want int64
	}{{"9.0", 500, 300}, {"9.0", 499, 499}, {"9.0", 501, 501}, {"8.0", 500, 500}} {
		if got := table.Overhead(0, &costmodel.Device{ComputeCapability: c.capability, ContextBytes: c.context}); got != c.want {
			t.Errorf("compute capability %s with a context of %d B: %d B, want %d", c.capability, c.context, got, c.want)
		}
	}
}
