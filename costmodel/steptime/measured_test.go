package steptime

import (
	"math"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// Measured ratios multiply the times of devmap's engine, those of seconds and those of ticks. Without
// a ratio of the gradients of weights, that of backwards counts.
func TestMeasuredRatios(t *testing.T) {
	t.Parallel()
	pass := func(seconds float64) costmodel.Pass { return costmodel.Pass{Products: seconds} }
	table := &costmodel.Table{
		Workload: costmodel.Workload{Mode: costmodel.Train, Runtime: costmodel.Devmap, Precision: costmodel.BF16True},
		Units:    []costmodel.Unit{{Work: costmodel.Work{Forward: pass(1), Recompute: pass(1), Backward: pass(2), Learn: pass(4), Update: 8}}},
	}
	device := costmodel.Device{FLOPS: 1}
	device.UpdateBytesPerSecond = 1
	device.ForwardRatio, device.BackwardRatio, device.UpdateRatio = 2, 3, .5
	for _, c := range []struct{ weights, learn float64 }{{0, 12}, {.25, 1}} {
		device.WeightsRatio = c.weights
		topology := &costmodel.Topology{Devices: []costmodel.Device{device}}
		if got, want := Unit(table, topology, 0, 0), (UnitSeconds{Forward: 2, Backward: 9 + c.learn, Learn: c.learn, Update: 4}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		ticks := TicksOf(table, topology)
		got := ticks.Unit(0, 0)
		for i, have := range []int64{got.Forward, got.Recompute, got.Backward, got.Learn, ticks.Update([]int{0}, 0)} {
			if want := []float64{2, 3, 6, c.learn, 4}[i]; math.Abs(float64(have)/perSecond-want) > 1e-9 {
				t.Errorf("ticks %d: %d, want %v s", i, have, want)
			}
		}
		table.Workload.Runtime = "torch" // ratios are those of devmap's engine
		if got := Unit(table, topology, 0, 0); got.Forward != 1 || got.Update != 8 {
			t.Errorf("torch: %+v", got)
		}
		table.Workload.Runtime = costmodel.Devmap
	}
}
