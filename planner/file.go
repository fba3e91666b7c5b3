package planner

import (
	"cmp"
	"path/filepath"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/phases"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// File returns the plan file of a solution. It has only the warnings about tight devices: the
// caller adds the others, with settings named as its users name them.
func (solution *Solution) File(problem *Problem) *devicemap.Plan {
	if solution.Pipeline != nil {
		return solution.pipelineFile(problem.Diffusion)
	}
	plan := devicemap.NewPlan(problem.Graph, solution.Costs, solution.Topology, solution.Map, solution.Devices)
	plan.Objective.Name = string(cmp.Or(solution.Objective, Memory))
	plan.Objective.Value, plan.Objective.LowerBound, plan.Objective.Gap = solution.Value, solution.LowerBound, solution.Gap()
	plan.Objective.Status, plan.Objective.Bound = string(solution.Status), solution.Bound
	if left := solution.Offloaded; left != nil {
		plan.Offload.Bytes, plan.Offload.FromDiskBytes, plan.Offload.LowerBoundBytes = left.Bytes, left.FromDisk, left.LowerBound
	}
	plan.Shards = estimate.Shards(problem.Graph, &cmp.Or(problem.Costs, solution.Costs).Workload)
	return plan
}

// pipelineFile returns the plan file of a diffusion pipeline. It has no gap, as devmap computes no
// bound.
func (solution *Solution) pipelineFile(asked *Diffusion) *devicemap.Plan {
	planned := solution.Pipeline
	plan := devicemap.NewPipelinePlan(solution.Topology, solution.Phases)
	plan.Model.Name, plan.Model.Source = filepath.Base(asked.Pipeline.Folder), asked.Pipeline.Folder
	for i := range asked.Pipeline.Components {
		if graph := asked.Pipeline.Components[i].Graph; graph != nil {
			plan.Model.Params += graph.ParamCount()
		}
	}
	plan.Workload.Mode, plan.Workload.Batch, plan.Workload.Runtime = costmodel.Infer, planned.Workload.Batch, "diffusers"
	if len(solution.Devices) > 1 {
		plan.Workload.Runtime = "xdit"
	}
	if training := planned.Workload.Train; training != nil {
		plan.Workload = *training
		plan.Workload.Runtime, plan.Workload.MicroBatches = "accelerate", max(1, training.MicroBatches)
		if planned.Workload.Replicas > 1 {
			plan.Workload.World = planned.Workload.Replicas
		}
	}
	plan.Pipeline, _ = json.Marshal(struct { // numbers and strings always encode
		Class           string `json:"class"`
		phases.Workload `json:",inline"`
		After           any `json:"after"`
	}{asked.Pipeline.Class, planned.Workload, planned.After})
	plan.Objective.Name, plan.Objective.Status, plan.Objective.Value = string(Memory), string(solution.Status), solution.Value
	if planned.Seconds > 0 {
		plan.StepSeconds = &planned.Seconds
	}
	return plan
}
