package planner

import (
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/offload"
)

// ConstraintError is a pin or together-group that cannot be kept, alone or
// with others: Field is "pin" or "together" with Pattern, what was asked for,
// or both are empty where pins contradict each other; Msg says why not. Pins and
// Together are, of several, the smallest set that was found such that no map
// keeps all: none of them can be left out.
type ConstraintError = instance.ConstraintError

// StageError is a pipeline that has no stages of this form: Field of the workload
// or the topology is at fault (micro_batches, gpus, …), on Devices GPUs with Units
// that can be stages; Msg says what works.
type StageError = instance.StageError

// OffloadError says that nothing can be offloaded here: Msg says why. TooLittle:
// the tier cannot hold what would have to leave.
type OffloadError = offload.Error
