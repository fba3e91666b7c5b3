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
	// Field is at fault: "pin" or "together".
	Field, Pattern, Msg string
}

// Error implements error.
func (err *PatternError) Error() string {
	return fmt.Sprintf("%s %q: %s", err.Field, err.Pattern, err.Msg)
}

// ConflictError says which pins contradict each other, in the model's names.
type ConflictError struct {
	Units   [2]string
	Devices [2]int
	Reason  string
}

// Error implements error.
func (err *ConflictError) Error() string {
	return fmt.Sprintf("%q on device %d and %q on device %d contradict each other: %s", err.Units[0], err.Devices[0], err.Units[1], err.Devices[1], err.Reason)
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
func (err *StageError) Error() string { return err.Words(costmodel.Setting.String) }

// Words is the error with its settings as name says them.
func (err *StageError) Words(name func(costmodel.Setting) string) string {
	return name(costmodel.Setting{Field: err.Field}) + ": " + err.Msg.Words(name)
}

// LinkError says that a map sends data between two devices that the topology
// does not join.
type LinkError struct {
	From, To int
	// Units are the two that follow each other across the pair.
	Units [2]string
}

// Error implements error.
func (err *LinkError) Error() string {
	return fmt.Sprintf("links missing between used devices: %q on device %d sends to %q on device %d, and the topology's \"links\" do not join them (add {\"from\": %d, \"to\": %d, …}, or name their \"host\")",
		err.Units[0], err.From, err.Units[1], err.To, err.From, err.To)
}
