// Package compile turns a plan into the program that devmap's own engine runs:
// for every device its arena with the place of each buffer, and the
// instructions of one step in order. Each pass is a file: stages and their
// routines, orders, channels, arenas, the lowering of actions to instructions
// and of what ends a step, and the waits between streams.
//
// A program that breaks a rule is never handed over.
package compile

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Program compiles a map of the graph's units. The table is that of devmap's
// own engine (package estimate), and says what is run.
//
// Orders are what each rank does, where that is not to be the schedule's own
// order: of the devices that hold units, in the order of their first stage; an
// action's chunk counts the device's stages. They must hold every action of
// every stage once.
//
// An error says what has no program: units that left the devices, an engine
// that is not devmap's, an order that deadlocks.
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
