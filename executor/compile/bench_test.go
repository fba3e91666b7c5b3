package compile

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

func BenchmarkMade(b *testing.B) {
	const count, devices = 130, 64
	table := &costmodel.Table{Workspaces: 1, Workload: costmodel.Workload{Runtime: costmodel.Devmap, Precision: costmodel.BF16True, Mode: costmodel.Train, Strategy: costmodel.Pipeline, Schedule: costmodel.OneFOneB, Batch: 64, MicroBatches: 64, Seq: 2048}}
	graph := &modelgraph.Graph{}
	placement := make(devicemap.Map, count)
	topology := &costmodel.Topology{}
	for index := range count {
		table.Units = append(table.Units, costmodel.Unit{Regions: costmodel.Regions{Weights: 256, Grads: 256, State: 256, Input: 256, Saved: 256, Forward: 256, Backward: 256, Output: 256, Tensors: 1}})
		graph.Units = append(graph.Units, modelgraph.Unit{Name: fmt.Sprintf("u%d", index), First: index, End: index + 1})
		placement[index] = devicemap.Device(index * devices / count)
	}
	for range devices {
		topology.Devices = append(topology.Devices, costmodel.Device{CapacityBytes: 1 << 40, WorkspaceBytes: 1000, FLOPS: 1e12, Rates: costmodel.Rates{LinkBytesPerSecond: 1e9}})
	}
	for b.Loop() {
		compiler, err := newCompiler(graph, table, topology, placement)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := compiler.program(nil); err != nil {
			b.Fatal(err)
		}
	}
}
