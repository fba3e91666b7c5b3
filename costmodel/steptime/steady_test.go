package steptime

import (
	"math"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// In a training a GPU's energy is at most its limit times the step. Products pay for it alone, and not
// if memory's kernels leave enough of the limit.
func TestSteady(t *testing.T) {
	t.Parallel()
	device := costmodel.Device{FLOPS: 100}
	device.SustainedFLOPS, device.MemoryPower, device.BytesPerSecond, device.AttentionFLOPS, device.UpdateBytesPerSecond = 80, 0.5, 10, 50, 10
	topology := &costmodel.Topology{Devices: []costmodel.Device{device}}
	train := costmodel.Workload{Mode: costmodel.Train, Runtime: costmodel.Devmap, Precision: costmodel.BF16True, MicroBatches: 2}
	other := func(change func(workload *costmodel.Workload)) costmodel.Workload {
		workload := train
		change(&workload)
		return workload
	}
	for _, c := range []struct {
		what     string
		workload costmodel.Workload
		work     costmodel.Work
		want     float64 // seconds of two micro-batches and the update
	}{
		{"products alone", train, costmodel.Work{Forward: costmodel.Pass{Products: 80}, Backward: costmodel.Pass{Products: 160}}, 6},
		// 8 s of products and 2 of memory have the energy of 10 + 1 s at the limit.
		{"products and memory", train, costmodel.Work{Forward: costmodel.Pass{Products: 100, Traffic: 5}, Learn: costmodel.Pass{Attention: 100, Products: 100}, Update: 10}, 11},
		{"mostly memory", train, costmodel.Work{Forward: costmodel.Pass{Products: 100, Traffic: 5}, Update: 10}, 4},
		{"recomputation", train, costmodel.Work{Forward: costmodel.Pass{Products: 80}, Recompute: costmodel.Pass{Products: 80}, Backward: costmodel.Pass{Products: 160}}, 8},
		{"a single forward", other(func(workload *costmodel.Workload) { workload.Mode = costmodel.Infer }), costmodel.Work{Forward: costmodel.Pass{Products: 100}}, 2},
		{"PyTorch", other(func(workload *costmodel.Workload) { workload.Runtime = "torch" }), costmodel.Work{Forward: costmodel.Pass{Products: 100}}, 2},
		{"fp32", other(func(workload *costmodel.Workload) { workload.Precision = costmodel.FP32True }), costmodel.Work{Forward: costmodel.Pass{Products: 100}}, 2},
	} {
		table := &costmodel.Table{Workload: c.workload, Units: []costmodel.Unit{{Work: c.work}}}
		for _, pass := range []*costmodel.Pass{&c.work.Forward, &c.work.Backward, &c.work.Learn} {
			table.Step.Products, table.Step.Attention, table.Step.Traffic = table.Step.Products+pass.Products, table.Step.Attention+pass.Attention, table.Step.Traffic+pass.Traffic
		}
		table.StepUpdate = c.work.Update
		one := Unit(table, topology, 0, 0)
		ticks := TicksOf(table, topology)
		unit := ticks.Unit(0, 0)
		counted := float64(2*(unit.Forward+unit.Recompute+unit.Backward+unit.Learn)+ticks.Update([]int{0}, 0)) / perSecond
		if got := 2*(one.Forward+one.Backward) + one.Update; math.Abs(got-c.want) > 1e-9 || c.workload.Runtime == costmodel.Devmap && math.Abs(counted-c.want) > 1e-9 {
			t.Errorf("%s: %v s, %v in ticks, want %v", c.what, got, counted, c.want)
		}
	}
	topology.Devices[0].SustainedFLOPS = math.SmallestNonzeroFloat64
	slow := &costmodel.Table{Workload: train, Units: []costmodel.Unit{{Work: costmodel.Work{Forward: costmodel.Pass{Products: 100}}}}, Step: costmodel.Pass{Products: 100}}
	if got := Unit(slow, topology, 0, 0).Forward; got < 1e30 {
		t.Errorf("at almost no FLOP/s, products take %v s", got)
	}
}
