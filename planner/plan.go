package planner

import (
	"context"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Plan is [Solve] of a model, what is run of it and the GPUs that run it, with
// the cost model's table. What the workload leaves open is what
// [costmodel.Fields] has for it, as on the command line.
func Plan(ctx context.Context, graph *modelgraph.Graph, workload costmodel.Workload, topology *costmodel.Topology) (*Solution, error) {
	return Solve(ctx, Problem{Graph: graph, Workload: workload, Topology: topology}, Settings{})
}
