package strategy

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Problem is what is to be run, and on what.
type Problem struct {
	Graph *modelgraph.Graph
	// Workload is as it was asked for, not resolved: a strategy, runtime or
	// schedule in it restricts the rows, [costmodel.Auto] and none do not.
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
	// TimeLimit ends the search for one map; 0: a second.
	TimeLimit time.Duration
}

func (p *Problem) gpus() int64 { return int64(len(p.Topology.Devices)) }

// planned is the planner's problem of one strategy.
func (p *Problem) planned(w costmodel.Workload) (planner.Problem, error) {
	w, err := estimate.Resolve(p.Graph, w)
	if err != nil {
		return planner.Problem{}, err
	}
	t, err := estimate.Table(p.Graph, w)
	return planner.Problem{
		Graph: p.Graph, Costs: t, Topology: p.Topology, Pins: p.Pins, Together: p.Together,
		Anywhere: p.Anywhere && w.Strategy == costmodel.DeviceMap, Objective: p.Objective,
	}, err
}

// row costs one strategy.
func (p *Problem) row(ctx context.Context, w costmodel.Workload) Row {
	r := Row{Workload: w, gpus: p.gpus()}
	q, err := p.planned(w)
	if err != nil {
		r.Refused = err
		return r
	}
	limit := p.TimeLimit
	if limit == 0 {
		limit = time.Second
	}
	s, err := planner.Solve(ctx, q, planner.Settings{TimeLimit: limit})
	var inf *planner.InfeasibleError
	switch {
	case errors.As(err, &inf):
		s, r.Infeasible = inf.Best, inf
	case err != nil:
		r.Refused = err
		return r
	}
	r.Resolved, r.Solution = q.Costs.Workload, s
	r.Communication = devicemap.Communication(q.Costs, p.Topology, s.Map)
	r.StepSeconds = devicemap.StepSeconds(q.Costs, p.Topology, s.Map)
	r.Warnings = slices.Concat(p.Graph.Warnings, s.Warnings)
	return r
}
