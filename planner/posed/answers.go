package posed

import (
	"github.com/devmap-dev/devmap/planner/internal/solve/anyplace"
	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// What the solvers of numbers take and say.
type (
	GraphSettings     = graph.Settings
	GraphTooLittle    = graph.InfeasibleError
	PipelineSettings  = stages.Settings
	PipelineTooLittle = stages.InfeasibleError
)

// The two solvers of a graph.
var (
	Contiguous    = downset.Solve
	Any           = anyplace.Solve
	SolvePipeline = stages.Solve
)
