package strategy

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
)

// automatic is the row of the map that device_map="auto" gives, of the workload of a device map
// under Accelerate. There is none on one GPU.
func (of *comparison) automatic() []Row {
	runtime := costmodel.DeviceMap.Traits().Runtimes[0]
	strategy := of.Workload.Strategy
	if !of.Current || of.gpus() < 2 || !strategy.Traits().Open && strategy != costmodel.DeviceMap || !of.tries(runtime) {
		return nil
	}
	row := Row{Workload: of.under(costmodel.DeviceMap, runtime), Current: true}
	problem := of.Problem
	problem.Workload, problem.Costs, problem.Offload = row.Workload, nil, ""
	problem, err := problem.Resolved()
	if err != nil {
		return nil // the device map's row has the reason
	}
	placed := balanced(of.Graph, &weightSizes{&problem.Costs.Workload}, freeBytes(&problem))
	report := devicemap.Check(of.Graph, problem.Costs, problem.Topology, placed.Flatten(of.Graph), nil)
	for _, fault := range report.Faults {
		if fault.Kind != "does-not-fit" {
			row.Refused = fmt.Errorf("Accelerate's own map does not run: %s", fault) //nolint:staticcheck // a name
			return []Row{row}
		}
	}
	solution := assess(placed, report.Devices)
	solution.Costs = problem.Costs
	row.answer(&problem, solution)
	return []Row{row}
}

// freeBytes are the bytes that PyTorch reports free on each GPU after the context is created.
func freeBytes(problem *planner.Problem) []int64 {
	devices := problem.Topology.Devices
	free := make([]int64, len(devices))
	for i := range devices {
		free[i] = max(0, devices[i].Budget()-problem.Costs.Overhead(i, &devices[i]))
	}
	return free
}

// assess is a solution of a map that was not searched for.
func assess(placed devicemap.Map, devices []devicemap.Prediction) *planner.Solution {
	solution := &planner.Solution{Map: placed, Devices: devices, Verdict: instance.Worst(devices)}
	for i := range devices {
		if devices[i].Share > solution.LargestShare {
			solution.LargestShare, solution.Bottleneck = devices[i].Share, i
		}
	}
	solution.Value = solution.LargestShare
	return solution
}

// Automatic returns the row of the map that device_map="auto" gives for a problem of a device map.
// It returns nil on one GPU, for another strategy, and if Accelerate's map does not run.
func Automatic(problem planner.Problem) *Row {
	if problem.Diffusion != nil || problem.Graph == nil {
		return nil
	}
	for _, row := range (&comparison{Problem: problem, Options: Options{Current: true}}).automatic() {
		if row.Refused == nil {
			return &row
		}
	}
	return nil
}
