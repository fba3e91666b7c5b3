package backendtest

import (
	"math/rand/v2"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/compile"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Place chooses the devices of units; nil: all on one.
type Place func(graph *modelgraph.Graph, table *costmodel.Table) devicemap.Map

// Workspace is the memory that a device has for libraries, in bytes: little, as the processor's
// backend has none.
var Workspace int64 = 1 << 12

// Job compiles a model for a workload, and sets the workload's runtime and world.
func Job(graph *modelgraph.Graph, workload costmodel.Workload, devices int, place Place) (*executor.Job, error) {
	workload.Runtime = costmodel.Devmap
	if workload.Strategy == costmodel.Pipeline {
		workload.World = int64(devices)
	}
	workload, err := estimate.Resolve(graph, workload)
	if err != nil {
		return nil, err
	}
	table, err := estimate.Table(graph, workload)
	if err != nil {
		return nil, err
	}
	found, err := catalogue.Find("h200-141gb")
	if err != nil {
		return nil, err
	}
	topology := &costmodel.Topology{}
	for range devices {
		topology.Devices = append(topology.Devices, found.Device(workload.Mode))
		topology.Devices[len(topology.Devices)-1].WorkspaceBytes = Workspace
	}
	placement := make(devicemap.Map, len(graph.Units))
	if place != nil {
		placement = place(graph, table)
	}
	prog, err := compile.Program(graph, table, topology, placement, nil)
	if err != nil {
		return nil, err
	}
	model, err := recipe.Of(graph, &table.Workload)
	if err != nil {
		return nil, err
	}
	return &executor.Job{Graph: graph, Workload: &table.Workload, Recipe: model, Program: prog}, nil
}

// Runs cuts the units into runs, which are assigned to the devices round-robin: of equal length, or
// with random borders.
func Runs(devices, runs int, random *rand.Rand) Place {
	return func(graph *modelgraph.Graph, _ *costmodel.Table) devicemap.Map {
		units := len(graph.Units)
		stages := min(units, devices*runs)
		ends := make([]int, stages)
		for stage := range ends {
			ends[stage] = (stage + 1) * units / stages
			if random != nil && stage < stages-1 {
				before := 0
				if stage > 0 {
					before = ends[stage-1]
				}
				ends[stage] = before + 1 + random.IntN(min(units-before-(stages-stage-1), 2*units/stages))
			}
		}
		out, stage := make(devicemap.Map, units), 0
		for unit := range out {
			if unit == ends[stage] {
				stage++
			}
			out[unit] = devicemap.Device(stage % devices)
		}
		return out
	}
}

// Vee cuts the units into a V: runs with random borders go down the devices and back, and the last
// device has one run for its two stages. With fewer units than that, fewer devices hold any.
func Vee(devices int, random *rand.Rand) Place {
	return func(graph *modelgraph.Graph, table *costmodel.Table) devicemap.Map {
		ranks := max(1, min(devices, len(graph.Units)/2))
		runs := Runs(2*ranks-1, 1, random)(graph, table)
		schedule := costmodel.Schedule{Kind: costmodel.ZBV, Stages: int64(ranks)}
		for unit, run := range runs {
			runs[unit] = devicemap.Device(schedule.RunRank(int64(run)))
		}
		return runs
	}
}

// RandomDevices returns random device maps whose runs are on any devices. Units with a tied weight
// share a device.
func RandomDevices(devices int, random *rand.Rand) Place {
	return func(graph *modelgraph.Graph, table *costmodel.Table) devicemap.Map {
		out := make(devicemap.Map, len(graph.Units))
		for unit := range out {
			out[unit] = devicemap.Device(random.IntN(devices))
			if unit > 0 && random.IntN(3) > 0 {
				out[unit] = out[unit-1]
			}
		}
		for unit := range out {
			for number, tied := range table.Units[unit].Regions.Tied {
				if number == 0 {
					out[unit] = out[tied.Owner]
				}
				out[tied.Owner] = out[unit]
			}
		}
		return out
	}
}
