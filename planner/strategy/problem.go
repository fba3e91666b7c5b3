package strategy

import (
	"context"
	"errors"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
)

// Problem is what is to be run, and on what.
type Problem struct {
	Graph *modelgraph.Graph
	// Workload is as it was asked for, not resolved: a strategy, runtime or
	// schedule in it restricts the rows, [costmodel.Auto] and none do not, and
	// 0 micro-batches are as many as fill a pipeline.
	Workload costmodel.Workload
	Topology *costmodel.Topology
	// Pins and Together hold where there is a device map.
	Pins     []planner.Pin
	Together [][]string
	// Anywhere lets a device map put any unit on any device.
	Anywhere bool
	// Ordered: what else was asked for goes with maps in device order alone,
	// so that no other is offered.
	Ordered bool
	// Objective is what is minimised where there is a choice of maps; empty:
	// [planner.Memory].
	Objective planner.Objective
	// Offload is where units of a device map may leave for, in inference.
	// Stay: none does all the same, as what fits without is sought.
	Offload planner.Tier
	Stay    bool
	// TimeLimit ends the search for one map; 0: a second.
	TimeLimit time.Duration

	// Asked is the request, where Workload was chosen from it: changes are
	// settings over those of the request. Nil: Workload.
	Asked *costmodel.Workload
	// On asks for other GPUs in the words of the request: a number of them,
	// and the name of a kind ("": as they are). The topology is nil where it
	// cannot say so. Nil: by the fields gpus and gpu.
	On func(count int, kind string) (topology *costmodel.Topology, set []costmodel.Setting, without []string)
	// MayOffload: the request may set offload.
	MayOffload bool
	// Takes reports that the request with a change asks for the change's row
	// and nothing else. Nil: it does.
	Takes func(*Change) bool

	// set, without and notes are those of a change that are no workload's.
	set            []costmodel.Setting
	without, notes []string
}

// Change is a step away from a problem, and the row that it leads to.
type Change struct {
	// Set are settings that stand in place of the request's own of the same
	// field: those of a workload ([costmodel.Fields]), and gpus, gpu, reserve,
	// contiguous and offload. Without are the fields that it must leave out:
	// topology, pin and together too. With both the request asks for Row.
	Set     []costmodel.Setting
	Without []string
	// Notes are what the settings do not say: "gradient accumulation".
	Notes []string
	Row   Row
	// To is the problem that Row answers.
	To *Problem
}

func (problem *Problem) gpus() int64 { return int64(len(problem.Topology.Devices)) }

// planned is the planner's problem of one strategy.
func (problem *Problem) planned(workload costmodel.Workload) (planner.Problem, error) {
	workload, err := estimate.Resolve(problem.Graph, estimate.On(problem.Graph, workload, problem.Topology))
	if err != nil {
		return planner.Problem{}, err
	}
	table, err := estimate.Table(problem.Graph, workload)
	if err != nil {
		return planner.Problem{}, err
	}
	table.Marks = nil // rows are of peaks; a pool takes longer to follow than all else of a row
	return planner.Problem{
		Graph: problem.Graph, Costs: table, Topology: problem.Topology, Pins: problem.Pins, Together: problem.Together,
		Anywhere: problem.Anywhere && workload.Strategy.Traits().Sequential, Objective: problem.Objective, Offload: problem.tier(&workload),
	}, nil
}

// tier is where units may leave for under a strategy.
func (problem *Problem) tier(workload *costmodel.Workload) planner.Tier {
	if !workload.Strategy.Traits().Sequential || workload.Mode == costmodel.Train || problem.Anywhere || problem.Stay {
		return ""
	}
	return problem.Offload
}

// row costs one strategy.
func (problem *Problem) row(ctx context.Context, workload costmodel.Workload) Row {
	row := Row{Workload: workload}
	changed, err := problem.planned(workload)
	if err != nil {
		row.Refused = err
		return row
	}
	limit := problem.TimeLimit
	if limit == 0 {
		limit = time.Second
	}
	solution, err := planner.Solve(ctx, changed, planner.Settings{TimeLimit: limit})
	var inf *planner.InfeasibleError
	switch {
	case errors.As(err, &inf):
		solution = inf.Best
	case err != nil:
		row.Refused = err
		return row
	}
	row.answer(changed.Costs, problem.Topology, solution)
	return row
}
