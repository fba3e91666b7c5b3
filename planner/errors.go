package planner

import (
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/offload"
	"github.com/devmap-dev/devmap/planner/internal/solve/certificate"
)

// FaultError is an answer that fails its own check: a fault of ours.
type FaultError = certificate.FaultError

// PatternError is a pin or together-group that cannot be kept.
type PatternError = instance.PatternError

// ConflictError says which pins contradict each other, in the model's names.
type ConflictError = instance.ConflictError

// ContradictionError is pins and together-groups that no map keeps all of:
// the smallest set of them that was found, none of which can be left out. It
// wraps what is wrong with them, a [*PatternError] or [*ConflictError].
type ContradictionError = instance.ContradictionError

// StageError is a pipeline that has no stages of this form.
type StageError = instance.StageError

// LinkError says that a map sends data between two devices that the topology
// does not join.
type LinkError = instance.LinkError

// OffloadError says that nothing can be offloaded here.
type OffloadError = offload.Error
