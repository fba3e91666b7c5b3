// Package compile turns a plan into the program that devmap's own engine runs. For every device the
// program has an arena with the place of each buffer, and the instructions of one step in order.
// Each pass is a file. They make stages and their routines, orders, channels, arenas, instructions
// of actions, the end of a step, and the waits between streams.
//
// A program that breaks a rule is never returned.
package compile

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Program compiles a map of the graph's units. The table must be that of devmap's own engine
// (package estimate); its workload says what runs.
//
// orders, if not nil, replaces the schedule's order: a list of actions for each device that holds
// units, in the order of their first stage. An action's chunk is the index of a stage on its
// device. Every action of every stage must occur once.
//
// An error says why there is no program. Causes are a unit on no device, another engine, an order
// that deadlocks, and an arena over its budget.
func Program(graph *modelgraph.Graph, table *costmodel.Table, topology *costmodel.Topology, placement devicemap.Map, orders [][]order.Action) (*program.Program, error) {
	if runtime := table.Workload.Runtime; !costmodel.StageRulesOf(runtime).Arena {
		return nil, fmt.Errorf("runtime %q plans no arenas: only a plan for %s has a program", runtime, costmodel.Devmap)
	}
	model, err := recipe.Of(graph, &table.Workload)
	if err != nil {
		return nil, err
	}
	return slotted(orders != nil, &table.Workload, func(slots int) (*program.Program, error) {
		compiler, err := newCompiler(graph, table, topology, placement)
		if err != nil {
			return nil, err
		}
		compiler.perChannel = slots
		out, err := compiler.program(orders)
		if err != nil {
			return nil, err
		}
		out.Model, out.Plan = graph.Name, graph.Digest()
		compiler.kernels(model)
		return out, nil
	})
}

func newCompiler(graph *modelgraph.Graph, table *costmodel.Table, topology *costmodel.Topology, placement devicemap.Map) (*compiler, error) {
	work := &table.Workload
	if len(placement) != len(table.Units) || len(graph.Units) != len(table.Units) {
		return nil, fmt.Errorf("a map of %d units and costs of %d for a model of %d", len(placement), len(table.Units), len(graph.Units))
	}
	compiler := &compiler{
		out: &program.Program{Timed: true}, table: table, topology: topology, times: steptime.TicksOf(table, topology),
		perChannel: int(costmodel.StageRulesOf(work.Runtime).Slots), microBatches: int(max(1, work.MicroBatches)), tokens: int(work.NewTokens),
		above: make(map[int32]int32), moving: make(map[int32]bool), units: make([]unit, len(table.Units)), devices: make([]device, len(topology.Devices)),
	}
	for index := range compiler.devices {
		compiler.devices[index].index = int32(index)
	}
	names := make([]string, len(graph.Units))
	for index := range names {
		names[index] = graph.Units[index].Name
	}
	names = program.UnitNames(names)
	for index := range compiler.units {
		place := placement[index]
		if place < 0 || int(place) >= len(topology.Devices) {
			return nil, fmt.Errorf("%s is on %v: only units on devices have a program", graph.Units[index].Name, place)
		}
		compiler.places = append(compiler.places, int(place))
		compiler.units[index] = unit{
			Regions: &table.Units[index].Regions, name: names[index], device: int32(place),
			weights: program.None, master: program.None, state: program.None, grads: program.None, cache: program.None, feed: program.None,
		}
	}
	compiler.tie()
	if err := compiler.stage(graph); err != nil {
		return nil, err
	}
	return compiler, nil
}

// program runs the passes after the stages.
func (compiler *compiler) program(orders [][]order.Action) (*program.Program, error) {
	if compiler.mode() == costmodel.Load {
		compiler.out.Routines = nil // nothing runs
	} else {
		if err := compiler.order(orders); err != nil {
			return nil, err
		}
		if err := (wiring{compiler}).connect(); err != nil {
			return nil, err
		}
	}
	compiler.arenas()
	for index := range compiler.out.Devices {
		if device := &compiler.out.Devices[index]; device.Arena > device.Budget {
			return nil, fmt.Errorf("device %d: an arena of %v, and its budget is %v", device.ID, costmodel.Bytes(device.Arena), costmodel.Bytes(device.Budget))
		}
	}
	compiler.lower()
	return compiler.out, nil
}
