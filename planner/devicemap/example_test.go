package devicemap_test

import (
	"fmt"
	"os"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// blocks returns a model of four blocks of 10 bytes each, and its costs.
func blocks() (*modelgraph.Graph, *costmodel.Table) {
	weight := []modelgraph.Tensor{{Name: "weight", Shape: []int64{5}, DType: modelgraph.BF16}}
	var layers []modelgraph.Layer
	table := &costmodel.Table{Workload: costmodel.Workload{Mode: costmodel.Load, Strategy: costmodel.DeviceMap}}
	for i := range 4 {
		layers = append(layers, modelgraph.Layer{Name: fmt.Sprintf("blocks.%d", i), Params: weight})
		table.Units = append(table.Units, costmodel.Unit{Name: layers[i].Name, Params: 10})
	}
	graph, err := modelgraph.New("four blocks", layers, nil)
	if err != nil {
		panic(err)
	}
	return graph, table
}

// Another tool's map is checked without a solver: all faults, and the memory that each device would
// need.
func ExampleCheck() {
	graph, table := blocks()
	gpus := &costmodel.Topology{Devices: []costmodel.Device{{CapacityBytes: 25}, {CapacityBytes: 25}}}
	report := devicemap.Check(graph, table, gpus, devicemap.Flat{
		{Key: "blocks.0", Device: 0}, {Key: "blocks.1", Device: 0}, {Key: "blocks.2", Device: 0}, {Key: "block.3", Device: 1},
	}, nil)
	for _, fault := range report.Faults {
		fmt.Println(fault)
	}
	// Output:
	// unknown-module: "block.3": the model has no such module; the nearest is "blocks.3"
	// no-device: "blocks.3": no key of the map covers it
	// does-not-fit: "device 0": it would hold 30 B at its peak (weights), 5 B more than its budget of 25 B
}

// A plan file has a map, its model and workload, and the predicted memory of each device.
func ExampleNewPlan() {
	graph, table := blocks()
	gpus := &costmodel.Topology{Devices: []costmodel.Device{{CapacityBytes: 25}, {CapacityBytes: 25}}}
	placed := devicemap.Map{0, 0, 1, 1}
	plan := devicemap.NewPlan(graph, table, gpus, placed, devicemap.Predict(table, gpus, placed))
	if err := devicemap.WriteJSON(os.Stdout, plan.DeviceMap); err != nil {
		panic(err)
	}
	fmt.Println(plan.Devices[1].Predicted.PeakAllocatedBytes, "bytes on device 1, imbalance", plan.Imbalance)
	// Output:
	// {
	//  "blocks.0": 0,
	//  "blocks.1": 0,
	//  "blocks.2": 1,
	//  "blocks.3": 1
	// }
	// 20 bytes on device 1, imbalance 1
}
