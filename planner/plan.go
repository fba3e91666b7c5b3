package planner

import (
	"context"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Plan calls [Solve] for a model, its workload and its GPUs, with the cost model's table.
// [costmodel.Fields] gives the defaults of settings that the workload leaves open, as on the
// command line.
func Plan(ctx context.Context, graph *modelgraph.Graph, workload costmodel.Workload, topology *costmodel.Topology) (*Solution, error) {
	return Solve(ctx, Problem{Graph: graph, Workload: workload, Topology: topology}, Settings{})
}
