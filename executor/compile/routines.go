package compile

import (
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/modelgraph"
)

// register adds a routine to the program.
func (compiler *compiler) register(graph *modelgraph.Graph, routine *routine) {
	routine.index = int32(len(compiler.out.Routines))
	units := make([]string, 0, routine.End-routine.First)
	for index := routine.First; index < routine.End; index++ {
		units = append(units, graph.Units[index].Name)
	}
	compiler.out.Routines = append(compiler.out.Routines, program.Routine{Name: compiler.units[routine.unit].name, Units: units})
}
