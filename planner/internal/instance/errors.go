package instance

import (
	"errors"
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
)

// ErrNone says that no map within the caps exists, or that none was found. The answer that comes
// with it says what is proved.
var ErrNone = errors.New("planner: no map within the caps")

// ConstraintError is a pin or together-group that no map can keep.
type ConstraintError struct {
	// Field is "pin" or "together", and Pattern is its pattern. Both are empty if pins contradict
	// each other.
	Field, Pattern string
	Msg            string
	// Pins and Together are the smallest conflicting set found, if several constraints conflict.
	// Without any one of them, the rest can be kept.
	Pins     []Pin
	Together [][]string
}

// Error implements error.
func (err *ConstraintError) Error() string { return err.Words(costmodel.Setting.String) }

// Words returns the message. name formats its settings.
func (err *ConstraintError) Words(name func(costmodel.Setting) string) string {
	text := err.Msg
	if err.Field != "" {
		text = fmt.Sprintf("%s %q: %s", err.Field, err.Pattern, err.Msg)
	}
	var set []string
	for _, pin := range err.Pins {
		set = append(set, name(costmodel.Setting{Field: "pin", Value: fmt.Sprintf("%s=%d", pin.Pattern, pin.Device)}))
	}
	for _, patterns := range err.Together {
		set = append(set, name(costmodel.Setting{Field: "together", Value: strings.Join(patterns, ",")}))
	}
	if len(set) == 0 {
		return text
	}
	return fmt.Sprintf("%s (the smallest contradiction found: %s)", text, strings.Join(set, " "))
}

// StageError is a pipeline that cannot have these stages.
type StageError struct {
	// Field is the name of the field at fault in a plan file or a topology.
	Field string
	// Devices is the number of GPUs, and Units the number of units that can be stages.
	Devices, Units int
	Msg            costmodel.Message
}

// Error implements error.
func (err *StageError) Error() string { return err.Words(costmodel.Setting.String) }

// Words returns the message. name formats its settings.
func (err *StageError) Words(name func(costmodel.Setting) string) string {
	return name(costmodel.Setting{Field: err.Field}) + ": " + err.Msg.Words(name)
}

// LinkError says that a map sends data between two devices without a link.
type LinkError struct {
	From, To int
	// Units are the consecutive units on the two devices.
	Units [2]string
}

// Error implements error.
func (err *LinkError) Error() string {
	return fmt.Sprintf("links missing between used devices: %q on device %d sends to %q on device %d, and the topology's \"links\" do not join them (add {\"from\": %d, \"to\": %d, …}, or name their \"host\")",
		err.Units[0], err.From, err.Units[1], err.To, err.From, err.To)
}
