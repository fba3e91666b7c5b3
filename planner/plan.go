package planner

import (
	"context"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Plan is [Solve] of a model, what is run of it and the GPUs that run it, with
// the cost model's table. What the workload leaves open is what
// [costmodel.Fields] has for it, as on the command line.
func Plan(ctx context.Context, graph *modelgraph.Graph, workload costmodel.Workload, topology *costmodel.Topology, options ...Option) (*Solution, error) {
	asked := question{problem: Problem{Graph: graph, Workload: workload, Topology: topology}}
	for _, option := range options {
		option(&asked)
	}
	return Solve(ctx, asked.problem, asked.settings)
}

// Option changes what [Plan] asks for.
type Option func(*question)

type question struct {
	problem  Problem
	settings Settings
}

// WithPins fixes units to devices.
func WithPins(pins ...Pin) Option {
	return func(asked *question) { asked.problem.Pins = append(asked.problem.Pins, pins...) }
}

// WithObjective sets what is minimised; without it, [Memory].
func WithObjective(objective Objective) Option {
	return func(asked *question) { asked.problem.Objective = objective }
}

// WithSettings limits the search.
func WithSettings(settings Settings) Option {
	return func(asked *question) { asked.settings = settings }
}
