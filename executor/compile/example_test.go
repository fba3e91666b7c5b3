package compile_test

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/executor/compile"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// A small Llama on two GPUs, which a prompt runs through: what crosses between
// them is one message.
func ExampleProgram() {
	graph, err := load.Model("llama-3.2-1b", load.Options{BuiltIn: fixtures.Models()})
	if err != nil {
		fmt.Println(err)
		return
	}
	workload, err := estimate.Resolve(graph, costmodel.Workload{Runtime: costmodel.Devmap, Strategy: costmodel.Pipeline, Seq: 128, World: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	table, err := estimate.Table(graph, workload)
	if err != nil {
		fmt.Println(err)
		return
	}
	found, err := catalogue.Find("h100-80gb")
	if err != nil {
		fmt.Println(err)
		return
	}
	gpu := found.Device(workload.Mode)
	topology := &costmodel.Topology{Devices: []costmodel.Device{gpu, gpu}}
	placement := make(devicemap.Map, len(graph.Units))
	for unit := range placement {
		if unit > len(placement)/2 {
			placement[unit] = 1
		}
	}
	out, err := compile.Program(graph, table, topology, placement, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, device := range out.Devices {
		fmt.Printf("device %d: %v\n", device.ID, costmodel.Bytes(device.Arena))
		for number := device.First; number < device.End; number++ {
			if instr := &out.Instrs[number]; instr.Channel >= 0 {
				fmt.Println(out.Line(number))
			}
		}
	}
	// Output:
	// device 0: 1.66 GiB
	// 0.23 to1 send mb0 act[1]#0 out[0] after compute:0.22
	// device 1: 1.24 GiB
	// 1.8 compute recv mb0 act[1]#0 >act[1].slot[0]
	// 1.10 compute free act[1]#0
}
