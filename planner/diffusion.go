package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/phases"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// Diffusion is a diffusion pipeline and its workload. Its plan lists the memory of each device in
// each phase. devmap tries all degrees that the workload leaves open and that multiply to the
// number of devices.
type Diffusion struct {
	Pipeline *diffusers.Pipeline
	Workload phases.Workload
}

// solveDiffusion returns the best solution of all degrees. Fitting solutions are ordered by time,
// then by how few GPUs share weights, then by memory.
func (problem *Problem) solveDiffusion() (*Solution, error) {
	if cmp.Or(problem.Objective, Memory) != Memory {
		return nil, timedPhases(problem.Objective)
	}
	devices := problem.Topology.Devices
	least := slices.MinFunc(devices, func(a, b costmodel.Device) int { return cmp.Compare(a.Budget(), b.Budget()) })
	plans, err := phases.Of(problem.Diffusion.Pipeline, problem.Diffusion.Workload, least, len(devices))
	if err != nil {
		return nil, err
	}
	solutions := make([]*Solution, len(plans))
	for i, plan := range plans {
		if solutions[i], err = problem.phased(plan); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(solutions, compareSolutions)
	best := *solutions[0]
	best.Configs = solutions
	if best.LargestShare <= 1 {
		return &best, nil
	}
	large := best.tooLarge()
	if len(solutions) > 1 {
		large.Form = costmodel.Messagef(", whatever the degrees")
	}
	// The search tries two of PipeFusion's splits of the blocks. It tries every other setting.
	large.Proved = !slices.ContainsFunc(solutions, func(way *Solution) bool { return way.Pipeline.Workload.PipeFusion > 1 })
	return &best, large
}

// timedPhases returns the error for an objective that is a time.
func timedPhases(objective Objective) error {
	return costmodel.Refuse(costmodel.Set("objective", objective), "the phases of a diffusion pipeline are planned for memory alone")
}

// compareSolutions orders two solutions of a pipeline, the better one first.
func compareSolutions(a, b *Solution) int {
	if (a.LargestShare <= 1) != (b.LargestShare <= 1) {
		return cmp.Compare(a.LargestShare, b.LargestShare)
	}
	return cmp.Or(cmp.Compare(a.Pipeline.Seconds, b.Pipeline.Seconds),
		cmp.Compare(a.Pipeline.Workload.FullyShardDegree, b.Pipeline.Workload.FullyShardDegree), cmp.Compare(a.LargestShare, b.LargestShare))
}

// phased returns the solution for the degrees of a plan.
func (problem *Problem) phased(plan *phases.Plan) (*Solution, error) {
	out := &Solution{Topology: problem.Topology, Pipeline: plan, Method: "all degrees that make up the number of devices"}
	for i := range plan.Phases {
		phase := &plan.Phases[i]
		out.Phases = append(out.Phases, devicemap.Phase{Name: phase.Name, Component: phase.Component, Seconds: phase.Seconds, Used: phase.Memory, Pool: plan.Pool})
	}
	file := devicemap.NewPipelinePlan(problem.Topology, out.Phases)
	out.Phases, out.Devices = file.Phases, file.Devices
	for _, text := range plan.Warnings {
		out.Warnings = append(out.Warnings, costmodel.Messagef("%s", text))
	}
	out.Bottleneck, out.LargestShare = instance.Fullest(out.Devices)
	out.Verdict = instance.Worst(out.Devices)
	var err error
	if out.Certificate, err = (certificate.Claim{Value: math.NaN()}).Certify(out.LargestShare); err != nil {
		return nil, fmt.Errorf("planner: %w", err)
	}
	return out, nil
}
