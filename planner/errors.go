package planner

import (
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/offload"
)

// ConstraintError is a pin or together-group that no map can keep. Field is "pin" or "together",
// and Pattern is what you asked for. Both are empty if pins contradict each other. Msg gives the
// reason. If several constraints conflict, Pins and Together are the smallest conflicting set
// found: without any one of them the rest can be kept.
type ConstraintError = instance.ConstraintError

// StageError is a pipeline that cannot have these stages. Field names the setting of the workload
// or the topology at fault (micro_batches, gpus, …). Devices is the number of GPUs and Units the
// number of units that can be stages. Msg says what works.
type StageError = instance.StageError

// OffloadError says that devmap cannot offload here, and Msg says why. TooLittle: the tier is too
// small for the units that would have to leave.
type OffloadError = offload.Error
