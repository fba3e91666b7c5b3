package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// StageTable is the table of one pipeline stage with its own form: dp replicas of tp GPUs each, and its
// recomputation. The resolved workload leaves some of these open (auto). If replicas are open, its batch
// is the whole step's, and each replica takes an equal part. Errors are [*costmodel.FieldError].
func StageTable(graph *modelgraph.Graph, workload costmodel.Workload, dp, tp int64, recompute string) (*costmodel.Table, error) {
	gpus := workload.World
	if workload.DP == costmodel.AutoDegree {
		if rows := workload.Batch / workload.MicroBatches; rows%dp != 0 {
			return nil, refuse("dp", dp, "%d replicas cannot share the %d sequences of a micro-batch evenly (%s)", dp, rows, value.NearestDivisors(dp, rows, nil))
		}
		workload.Batch /= dp
	}
	if dp != workload.DP.Count() || workload.DP == costmodel.AutoDegree {
		workload.ShardDegree = 0
	}
	workload.DP, workload.TP, workload.Recompute = costmodel.Degree(dp), costmodel.Degree(tp), recompute
	workload.World = (gpus + dp*tp - 1) / (dp * tp) * (dp * tp) // stages of other forms have the rest
	resolved, err := Resolve(graph, workload)
	if err != nil {
		return nil, err
	}
	table, err := Table(graph, resolved)
	if err != nil {
		return nil, err
	}
	table.Workload.World = gpus
	return table, nil
}
