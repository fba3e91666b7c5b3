package posed

import (
	"github.com/devmap-dev/devmap/planner/internal/solve/partition"
	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// What the solvers of numbers take and say.
type (
	GraphSettings     = partition.Settings
	GraphTooLittle    = partition.InfeasibleError
	PipelineSettings  = stages.Settings
	PipelineTooLittle = stages.InfeasibleError
)

// The two solvers of a graph.
var (
	Contiguous    = partition.Contiguous
	Any           = partition.Any
	SolvePipeline = stages.Solve
)
