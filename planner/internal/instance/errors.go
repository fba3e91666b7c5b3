package instance

import (
	"errors"
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// ErrNone says that no map within the caps exists, or was found; the answer
// that comes with it says what is proved of that.
var ErrNone = errors.New("planner: no map within the caps")

// PatternError is a pin or together-group that cannot be kept.
type PatternError struct {
	Flag, Pattern, Msg string
}

// Error implements error.
func (e *PatternError) Error() string { return fmt.Sprintf("%s %q: %s", e.Flag, e.Pattern, e.Msg) }

// ConflictError says which pins contradict each other, in the model's names.
type ConflictError struct {
	Units   [2]string
	Devices [2]int
	Reason  string
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%q on device %d and %q on device %d contradict each other: %s", e.Units[0], e.Devices[0], e.Units[1], e.Devices[1], e.Reason)
}

// StageError is a pipeline that has no stages of this form.
type StageError struct {
	// Field is at fault, as a plan file or a topology names it.
	Field string
	// Devices and Units are the GPUs, and the units that can be stages.
	Devices, Units int
	Msg            costmodel.Message
}

// Error implements error.
func (e *StageError) Error() string { return e.Words(costmodel.Setting.String) }

// Words is the error with its settings as name says them.
func (e *StageError) Words(name func(costmodel.Setting) string) string {
	return name(costmodel.Setting{Field: e.Field}) + ": " + e.Msg.Words(name)
}

// LinkError says that a map sends data between two devices that the topology
// does not join.
type LinkError struct {
	From, To int
	// Units are the two that follow each other across the pair.
	Units [2]string
}

// Error implements error.
func (e *LinkError) Error() string {
	return fmt.Sprintf("links missing between used devices: %q on device %d sends to %q on device %d, and the topology's \"links\" do not join them (add {\"from\": %d, \"to\": %d, …}, or name their \"host\")",
		e.Units[0], e.From, e.Units[1], e.To, e.From, e.To)
}
