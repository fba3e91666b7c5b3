package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// solveStages solves for stages of several GPUs each. Methods place units on stages as on GPUs. The
// answer is then converted to GPUs and predicted again.
func solveStages(ctx context.Context, problem *Problem, folded *costmodel.Topology, settings Settings) (*Solution, error) {
	stages, err := onStages(problem, folded)
	if err != nil {
		return nil, err
	}
	sol, err := Solve(ctx, stages, settings)
	var large *InfeasibleError
	var link *instance.LinkError
	var none *StageError
	switch {
	case errors.As(err, &large):
		large.Worst = folded.Starts[large.Worst]
		if large.Best != sol {
			err = errors.Join(err, onGPUs(large.Best, problem, folded))
		}
	case errors.As(err, &link):
		link.From, link.To = folded.Starts[link.From], folded.Starts[link.To]
	case errors.As(err, &none):
		workload := &problem.Costs.Workload
		none.Msg = costmodel.Messagef("%v; a GPU is here a stage of %d: %v × %v × %v", none.Msg, len(problem.Topology.Devices)/len(folded.Starts), costmodel.Set("dp", workload.DP), costmodel.Set("tp", workload.TP), costmodel.Set("cp", workload.CP))
		if stages := len(problem.Topology.Devices) / int(workload.TP.Count()*workload.CP.Count()); none.Field == "schedule" && len(folded.Starts) == 1 && workload.PP != 0 && stages > 1 {
			none.Msg = costmodel.Messagef("%v; or give %v %v", none.Msg, costmodel.Set("dp", 1), costmodel.Set("pp", stages))
		}
	}
	if sol == nil {
		return nil, err
	}
	if fault := onGPUs(sol, problem, folded); fault != nil {
		return nil, fault
	}
	return sol, err
}

// onStages returns the problem with one device for each stage.
func onStages(problem *Problem, folded *costmodel.Topology) (Problem, error) {
	stages := *problem
	stages.Topology = folded
	stages.Pins = slices.Clone(problem.Pins)
	for i := range stages.Pins {
		pin := &stages.Pins[i]
		if pin.Device < 0 || pin.Device >= len(problem.Topology.Devices) {
			return stages, &ConstraintError{Field: "pin", Pattern: pin.Pattern, Msg: fmt.Sprintf("there is no device %d", pin.Device)}
		}
		pin.Device = sort.SearchInts(folded.Starts, pin.Device+1) - 1
	}
	return stages, nil
}

// frontOfStages returns the front of a problem whose stages have several GPUs.
func frontOfStages(ctx context.Context, problem *Problem, folded *costmodel.Topology, settings Settings) (*Front, error) {
	stages, err := onStages(problem, folded)
	if err != nil {
		return nil, err
	}
	front, err := SolveFront(ctx, stages, settings)
	if err != nil {
		return nil, err
	}
	for _, point := range front.Points {
		if err := onGPUs(point, problem, folded); err != nil {
			return nil, err
		}
	}
	return front, nil
}

// onGPUs converts a solution of stages to GPUs. It predicts the GPUs, and compares the prediction
// with the certified one.
func onGPUs(sol *Solution, problem *Problem, folded *costmodel.Topology) error {
	placed := make(devicemap.Map, len(sol.Map))
	for unit, stage := range sol.Map {
		placed[unit] = stage
		if stage >= 0 {
			placed[unit] = devicemap.Device(folded.Starts[stage])
		}
	}
	sol.Map, sol.Topology, sol.Bottleneck = placed, problem.Topology, folded.Starts[sol.Bottleneck]
	sol.Devices = devicemap.Predict(problem.Costs, problem.Topology, placed)
	if _, most := instance.Fullest(sol.Devices); most != sol.LargestShare {
		return fmt.Errorf("planner: %w", &certificate.FaultError{Msg: fmt.Sprintf("the largest share is %v by stages and %v by GPUs", sol.LargestShare, most)})
	}
	return nil
}
