package accuracy_test

import (
	"math"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestOffloadStepTime predicts prefills with part of the weights in host memory. The rate is that
// of copies alone (offload_time.json, pageable).
func TestOffloadStepTime(t *testing.T) {
	const bound = .20
	var f struct {
		Runs []struct {
			Model      string
			Batch, Seq int64
			DeviceMap  map[string]any `json:"device_map"`
			Seconds    []float64
		}
	}
	read(t, "../../../fixtures/measured/offload_time.json", &f)
	for _, r := range f.Runs {
		g, table := costsOf(t, distConfig(t, r.Model), workload("prefill", r.Batch, r.Seq))
		gpu, err := catalogue.Find("h200-141gb")
		if err != nil {
			t.Fatal(err)
		}
		topo := &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{gpu.Device(costmodel.Infer)}, 2)}
		report := devicemap.Check(g, table, topo, flatten(t, r.DeviceMap), nil)
		for _, fault := range report.Faults {
			t.Error(fault)
		}
		got, measured := devicemap.StepSeconds(table, topo, report.Map), slices.Min(r.Seconds[1:])
		if got == nil {
			t.Fatalf("%s: no step time", r.Model)
		}
		off := *got/measured - 1
		t.Logf("%s, %d x %d tokens, offloaded: %.3f s predicted, %.3f s measured, %+.1f %%", r.Model, r.Batch, r.Seq, *got, measured, 100*off)
		if math.Abs(off) > bound {
			t.Errorf("%s: off by %+.1f %%", r.Model, 100*off)
		}
		topo.Devices[0].CPUBytesPerSecond = 0
		if s := devicemap.StepSeconds(table, topo, report.Map); s != nil {
			t.Errorf("%s: %v s without a rate of the tier", r.Model, *s)
		}
	}
}
