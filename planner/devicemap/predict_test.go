package devicemap_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// endsTable returns a table with a larger pool beyond the peak, 50 % instead of 10 %, on the device
// that computes the loss or the logits.
func endsTable(mode costmodel.Mode, steps ...costmodel.LayerMemory) *costmodel.Table {
	t := &costmodel.Table{Workload: costmodel.Workload{Mode: mode, Strategy: costmodel.DeviceMap, MicroBatches: 1}}
	t.BodySlack, t.HeadSlack = [2]float64{0, .1}, [2]float64{0, .5}
	for i := range steps {
		steps[i].Layer = fmt.Sprint("u", i)
		t.Units = append(t.Units, costmodel.Unit{Name: steps[i].Layer, Params: 1000, Layers: steps[i : i+1]})
	}
	t.InputDevice = -1 // no device has the model's outputs, unless a test sets it
	return t
}

// TestEnds: which devices have the head's pool.
func TestEnds(t *testing.T) {
	attention := costmodel.LayerMemory{Forward: 20, KV: 20, CacheGrowth: 4, HeadPeak: 30} // complete caches, but no logits
	head := costmodel.LayerMemory{Forward: 20, HeadPeak: 30}
	loss := costmodel.LayerMemory{Forward: 20, Saved: 10, Backward: 10, Loss: true}
	block := costmodel.LayerMemory{Forward: 20, Saved: 10, Backward: 10}
	for _, c := range []struct {
		name  string
		mode  costmodel.Mode
		steps []costmodel.LayerMemory
		place devicemap.Map
		input int // device of the outputs; −1 for none
		heads []bool
	}{
		{"logits in inference", costmodel.Infer, []costmodel.LayerMemory{attention, attention, head}, devicemap.Map{0, 1, 2}, -1, []bool{false, false, true}},
		{"the loss in training", costmodel.Train, []costmodel.LayerMemory{block, block, loss}, devicemap.Map{0, 1, 2}, -1, []bool{false, false, true}},
		{"a loss that is not last", costmodel.Train, []costmodel.LayerMemory{block, loss, block}, devicemap.Map{0, 1, 2}, -1, []bool{false, true, false}},
		{"outputs come back to the input", costmodel.Infer, []costmodel.LayerMemory{attention, attention, head}, devicemap.Map{0, 1, 2}, 0, []bool{true, false, true}},
		{"outputs on a device that runs nothing", costmodel.Infer, []costmodel.LayerMemory{attention, attention, head}, devicemap.Map{1, 1, 2}, 0, []bool{true, false, true}},
		{"blocks beside the head", costmodel.Infer, []costmodel.LayerMemory{attention, attention, head}, devicemap.Map{1, 0, 0}, -1, []bool{true, false, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := endsTable(c.mode, c.steps...)
			if c.input >= 0 {
				table.InputDevice, table.OutputBytes = c.input, 40
			}
			topo := &costmodel.Topology{Devices: make([]costmodel.Device, 3)}
			for d, got := range devicemap.Predict(table, topo, c.place) {
				if c.input == d && got.Predicted.PeakAllocatedBytes < 40 {
					t.Errorf("device %d holds %d B, and the outputs are 40", d, got.Predicted.PeakAllocatedBytes)
				}
				want := 0.1
				if c.heads[d] {
					want = 0.5
				}
				if peak := float64(got.Predicted.PeakAllocatedBytes); float64(got.Predicted.SlackBytes[1]) < want*peak-1 || float64(got.Predicted.SlackBytes[1]) > want*peak+1 {
					t.Errorf("device %d: %v B beyond a peak of %v, want %v of it", d, got.Predicted.SlackBytes, peak, want)
				}
			}
		})
	}
}

// TestLastStage: units after the last one with parameters belong to the last stage. The head's pool
// is only on that stage's device, on any device.
func TestLastStage(t *testing.T) {
	block := costmodel.LayerMemory{Forward: 20, Saved: 10, Backward: 10}
	table := endsTable(costmodel.Train, block, block, block, block)
	table.Workload.Strategy, table.Workload.Schedule = costmodel.Pipeline, costmodel.GPipe
	behind := costmodel.LayerMemory{Layer: "behind", Forward: 500, Saved: 400, Backward: 10}
	table.Units = append(table.Units, costmodel.Unit{Name: "behind", Layers: []costmodel.LayerMemory{behind}})
	between := behind // belongs to the next stage in any map
	between.Layer, between.Saved, between.Forward = "between", 100, 200
	table.Units = slices.Insert(table.Units, 2, costmodel.Unit{Name: "between", Layers: []costmodel.LayerMemory{between}})
	topo := &costmodel.Topology{Devices: make([]costmodel.Device, 2)}
	for _, last := range []devicemap.Device{0, 1} {
		first := 1 - last
		ps := devicemap.Predict(table, topo, devicemap.Map{first, first, first, last, last, last})
		if ps[first].Units != 2 || ps[last].Units != 4 {
			t.Errorf("%d and %d units, want 2 and 4", ps[first].Units, ps[last].Units)
		}
		if grown := ps[last].Predicted.PeakAllocatedBytes - ps[first].Predicted.PeakAllocatedBytes; grown < 500 {
			t.Errorf("the last stage holds %d B more than the first, and two units of it save 500", grown)
		}
		for d, part := range map[devicemap.Device]float64{first: .1, last: .5} {
			p := ps[d].Predicted
			if got := float64(p.SlackBytes[1]); got < part*float64(p.PeakAllocatedBytes)-1 || got > part*float64(p.PeakAllocatedBytes)+1 {
				t.Errorf("last stage on %d: device %d has %v B beyond %d, want %v of it", last, d, got, p.PeakAllocatedBytes, part)
			}
		}
	}
}
