package planner

import (
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/timeline"
	"github.com/devmap-dev/devmap/planner/internal/assignmemory"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/chain"
)

// alone returns [Solution.Alone].
func alone(in *instance.Instance, solution *Solution) string {
	if solution.Bound != string(chain.BoundUnit) || solution.Status != Optimal || len(solution.Devices) < 2 {
		return ""
	}
	var names []string
	for unit, device := range solution.Map {
		if int(device) != solution.Bottleneck {
			continue
		}
		resident := timeline.ResidentOn(in.Costs, -1, &in.Topology.Devices[device], false)
		if timeline.Of(&in.Costs.Units[unit]).Peak(resident) > 0 {
			names = append(names, in.Graph.Units[unit].Name)
		}
	}
	const most = 4
	if len(names) > most {
		return ""
	}
	return strings.Join(names, " + ")
}

// Arguments returns the computed lower bounds of the largest share. Some hold for any assignment of
// units. For a contiguous map it computes the bounds again.
func (solution *Solution) Arguments(problem *Problem) []instance.BoundValue {
	if traits := problem.Costs.Workload.Strategy.Traits(); solution.Bounds != nil || solution.Objective == Time || solution.Objective == Latency || solution.Offloaded != nil || traits.Staged || traits.Replicated {
		return solution.Bounds
	}
	const contiguous = "the largest share below which no contiguous map is"
	if costmodel.StageRulesOf(problem.Costs.Workload.Runtime).Arena { // the others rest on layers
		return []instance.BoundValue{{Name: solution.Bound, Value: solution.LowerBound, What: contiguous}}
	}
	in, err := problem.resolve()
	if err != nil {
		return nil
	}
	out, err := assignmemory.Arguments(in)
	if err != nil {
		return nil
	}
	for i := range out {
		if out[i].Name == solution.Bound && out[i].Value < solution.LowerBound { // contiguous maps may have a higher bound
			out[i].Value = solution.LowerBound
		}
	}
	if solution.Bound == "search" {
		out = append(out, instance.BoundValue{Name: solution.Bound, Value: solution.LowerBound, What: contiguous})
	}
	return out
}
