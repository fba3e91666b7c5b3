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

// Diffusion is a diffusion pipeline and what it is asked for. Its plan says what
// each device holds in each phase; the degrees that the workload leaves open are
// chosen among all that make up the number of devices.
type Diffusion struct {
	Pipeline *diffusers.Pipeline
	Workload phases.Workload
}

// solveDiffusion solves for all degrees. Of those that fit the fastest is best,
// then the one that cuts no weights, then the one that holds less.
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
	// Of PipeFusion's splits of the blocks two are tried, of all else there is one.
	large.Proved = !slices.ContainsFunc(solutions, func(way *Solution) bool { return way.Pipeline.Workload.PipeFusion > 1 })
	return &best, large
}

// timedPhases refuses to minimise a time of a diffusion pipeline.
func timedPhases(objective Objective) error {
	return costmodel.Refuse(costmodel.Set("objective", objective), "the phases of a diffusion pipeline are planned for memory alone")
}

// compareSolutions puts the better of two solutions of a pipeline first.
func compareSolutions(a, b *Solution) int {
	if (a.LargestShare <= 1) != (b.LargestShare <= 1) {
		return cmp.Compare(a.LargestShare, b.LargestShare)
	}
	return cmp.Or(cmp.Compare(a.Pipeline.Seconds, b.Pipeline.Seconds),
		cmp.Compare(a.Pipeline.Workload.FullyShardDegree, b.Pipeline.Workload.FullyShardDegree), cmp.Compare(a.LargestShare, b.LargestShare))
}

// phased is the solution for the degrees of a plan.
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
