package devicemap_test

import (
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestPersistentBuffers: a key must cover a buffer in the state dict
// (accelerate.utils.check_device_map), but no other buffer.
func TestPersistentBuffers(t *testing.T) {
	for _, persistent := range []bool{true, false} {
		weight := []modelgraph.Tensor{{Name: "weight", Shape: []int64{8}, DType: modelgraph.BF16}}
		table := []modelgraph.Tensor{{Name: "table", Shape: []int64{4}, DType: modelgraph.F32, Persistent: persistent}}
		graph, err := modelgraph.New("small", []modelgraph.Layer{{Name: "m.mlp", Params: weight, Buffers: table}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		costs, topo := load(t, graph, 1<<30, 1)
		report := devicemap.Check(graph, costs, topo, devicemap.Flat{{Key: "m.mlp.weight", Device: 0}}, nil)
		if faulty := len(report.Faults) > 0; faulty != persistent {
			t.Errorf("persistent %t: %+v", persistent, report.Faults)
		}
		if persistent && (len(report.Faults) != 1 || report.Faults[0].Kind != "no-device" || report.Faults[0].Module != "m.mlp.table") {
			t.Errorf("%+v", report.Faults)
		}
	}
}
