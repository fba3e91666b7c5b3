package estimate

import (
	"cmp"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/engine"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Native is the strategy and the runtime of a model that is a program, as its source says: OpenPI's
// are JAX's. It is empty for models that every engine runs; for nil it is that of such programs.
func Native(graph *modelgraph.Graph) (costmodel.Strategy, string) {
	if graph == nil || engine.Program(graph) {
		return costmodel.FSDP, value.JAX
	}
	return "", ""
}

// checkProgram refuses other engines than its own for a model that is a program.
func checkProgram(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	if engine.Program(graph) && workload.Runtime != value.JAX {
		return refuse("runtime", workload.Runtime, "%s is a JAX program of OpenPI, whose arrays hold all blocks stacked: %v runs it", graph.Class, costmodel.Set("runtime", value.JAX))
	}
	if strings.HasPrefix(workload.Preset, "openpi:") && !engine.Program(graph) {
		return refuse("preset", workload.Preset, "OpenPI trains pi0 and pi0.5, and %s is neither: plan pi0 or pi05, or use another preset", cmp.Or(graph.Class, "the model"))
	}
	return nil
}
