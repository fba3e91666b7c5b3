package costmodel_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestOverhead: a rank holds the communication library, and a buffer for each
// of its neighbours in the pipeline: on two ranks, for the one that there is.
func TestOverhead(t *testing.T) {
	for _, c := range []struct {
		world int64
		ring  bool
		peers []int64 // by rank
	}{
		{1, false, []int64{0}},
		{1, true, []int64{0}},
		{2, false, []int64{1, 1}},
		{2, true, []int64{1, 1}},
		{3, false, []int64{1, 2, 1}},
		{3, true, []int64{2, 2, 2}},
	} {
		table := &costmodel.Table{Workload: costmodel.Workload{Strategy: costmodel.Pipeline, World: c.world}, Comm: costmodel.Comm{World: 7, Peer: 100, Ring: c.ring}}
		for rank, peers := range c.peers {
			if got, want := table.Overhead(rank, &costmodel.Device{ContextBytes: 1000}), 1000+7+100*peers; got != want {
				t.Errorf("rank %d of %d, ring %t: %d B, want %d", rank, c.world, c.ring, got, want)
			}
		}
	}
}

// TestOverheadContext: the engine's own context stands in place of the
// catalogue's. A device that says another, smaller or larger, stays with it.
func TestOverheadContext(t *testing.T) {
	table := &costmodel.Table{Comm: costmodel.Comm{Contexts: map[string][2]int64{"9.0": {500, 80}}}}
	for _, c := range []struct {
		capability    string
		context, want int64
	}{{"9.0", 500, 80}, {"9.0", 499, 499}, {"9.0", 501, 501}, {"8.0", 500, 500}} {
		if got := table.Overhead(0, &costmodel.Device{ContextBytes: c.context, ComputeCapability: c.capability}); got != c.want {
			t.Errorf("a context of %d on %s: %d, want %d", c.context, c.capability, got, c.want)
		}
	}
}
