package compile_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/executor/compile"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// BenchmarkProgram compiles and checks llama-3.1-405b on 64 GPUs, in 64
// micro-batches.
func BenchmarkProgram(b *testing.B) {
	const devices = 64
	graph := fixtures.Must(load.Model("llama-3.1-405b", load.Options{BuiltIn: fixtures.Models()}))(b)
	workload, err := estimate.Resolve(graph, costmodel.Workload{
		Runtime: costmodel.Devmap, Mode: costmodel.Train, Strategy: costmodel.Pipeline, World: devices, Batch: devices, MicroBatches: devices, Seq: 2048,
	})
	if err != nil {
		b.Fatal(err)
	}
	table := fixtures.Must(estimate.Table(graph, workload))(b)
	found := fixtures.Must(catalogue.Find("h200-141gb"))(b)
	topology := &costmodel.Topology{}
	placement := make(devicemap.Map, len(graph.Units))
	for device := range devices {
		topology.Devices = append(topology.Devices, found.Device(workload.Mode))
		for unit := device * len(placement) / devices; unit < (device+1)*len(placement)/devices; unit++ {
			placement[unit] = devicemap.Device(device)
		}
	}
	for b.Loop() {
		if _, err := compile.Program(graph, table, topology, placement, nil); err != nil {
			b.Fatal(err)
		}
	}
}
