package steptime

import (
	"math"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestStageOfGPUs: a unit on T GPUs adds their sums round a ring, 2(T − 1)/T of the bytes. Its
// update adds the replicas' exchange: weights gathered and gradients reduced over the shards, and
// summed over copies.
func TestStageOfGPUs(t *testing.T) {
	table := &costmodel.Table{Workload: costmodel.Workload{
		Mode: costmodel.Train, Strategy: costmodel.Pipeline, Precision: costmodel.BF16True, World: 16, DP: 4, TP: 4, ShardDegree: 2,
	}}
	table.Units = []costmodel.Unit{{Work: costmodel.Work{
		Forward: costmodel.Pass{Reduced: 800, Reductions: 2}, Backward: costmodel.Pass{Reduced: 1600, Reductions: 1},
		Weights: 1000, Trained: 1000, Update: 6000,
	}}}
	gpu := costmodel.Device{CapacityBytes: 1, FLOPS: 1, Rates: costmodel.Rates{BytesPerSecond: 100, CollectiveBytesPerSecond: 10, CollectiveSeconds: 3}}
	topo := &costmodel.Topology{}
	for range 16 {
		topo.Devices = append(topo.Devices, gpu)
	}
	seconds := Unit(table, table.Folded(topo), 0, 0)
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s: %v s, want %v", what, got, want)
		}
	}
	near("forward", seconds.Forward, 2*.75*800/10+2*3)
	near("backward", seconds.Backward, 2*.75*1600/10+3)
	near("update", seconds.Update, 6000./100/2+(.5*(2000+2000)+2*.5*2000/2)/10+2*3)
	step := timing{table: table, topo: table.Folded(topo), place: []int{0}}
	near("update of the device", step.updateOn(0), seconds.Update)
	if got, want := Communication(table, topo, []int{0}), int64(2*.75*(800+1600)+.5*(2000+2000)+2*.5*2000/2); got != want {
		t.Errorf("%d B are sent, want %d", got, want)
	}
}

// TestMessageOfForms: each GPU of the next stage receives what its replica runs
// on, and the GPUs of this one send all of it between them.
func TestMessageOfForms(t *testing.T) {
	of := func(dp, tp int64, output int64) *costmodel.Table {
		table := &costmodel.Table{Units: []costmodel.Unit{{Work: costmodel.Work{Output: output}}}}
		for range dp - 1 {
			table.Workload.DP = 2
		}
		if tp > 1 {
			table.Workload.TP = 2
		}
		return table
	}
	for _, row := range []struct {
		from, to *costmodel.Table
		want     int64
	}{
		{of(1, 1, 100), of(1, 1, 100), 100},
		{of(1, 1, 100), of(2, 1, 50), 100}, // one GPU sends both halves
		{of(2, 1, 50), of(1, 1, 100), 100}, // one receives both
		{of(1, 1, 100), of(1, 2, 100), 200},
		{of(1, 2, 100), of(1, 2, 100), 100},
	} {
		if got := message(row.from, row.to, 0); got != row.want {
			t.Errorf("%d B, want %d", got, row.want)
		}
	}
}
