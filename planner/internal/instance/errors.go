package instance

import (
	"errors"
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
)

// ErrNone says that no map within the caps exists, or was found; the answer
// that comes with it says what is proved of that.
var ErrNone = errors.New("planner: no map within the caps")

// ConstraintError is a pin or together-group that cannot be kept, alone or with
// others.
type ConstraintError struct {
	// Field is at fault, "pin" or "together", with its pattern; both are empty
	// where pins contradict each other.
	Field, Pattern string
	Msg            string
	// Pins and Together are the smallest set found that no map keeps, if there
	// are several: none of them can be left out.
	Pins     []Pin
	Together [][]string
}

// Error implements error.
func (err *ConstraintError) Error() string { return err.Words(costmodel.Setting.String) }

// Words is the error with its settings as name says them.
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
