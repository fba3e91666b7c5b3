package out

import (
	"errors"
	"fmt"
	"io"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner"
)

// The contract's exit statuses.
const (
	ExitDone       = 0
	ExitError      = 1
	ExitUsage      = 2
	ExitInfeasible = 3
	ExitCheck      = 4
)

// UsageError is an error in the command line.
type UsageError struct{ err error }

func (err UsageError) Error() string { return err.err.Error() }
func (err UsageError) Unwrap() error { return err.err }

// Usagef returns a formatted [UsageError].
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Infeasible is a problem that fits nowhere, with changes that would help.
type Infeasible struct {
	Err      error
	Helps    []string // one per line
	Remedies []Remedy // the same for programs
}

func (infeasible *Infeasible) Error() string { return infeasible.Err.Error() }
func (infeasible *Infeasible) Unwrap() error { return infeasible.Err }

// ErrCheck is a device map with faults, which were printed.
var ErrCheck = errors.New("the check failed")

// ReportedError ends the command with a status; its errors are already printed.
type ReportedError struct {
	Status int
	Err    error // the error, for --json; nil: a report has it
}

func (err *ReportedError) Error() string { return fmt.Sprintf("exit status %d", err.Status) }

// Report prints an error and returns its exit status. words formats errors.
func Report(stderr io.Writer, err error, words func(error) string) int {
	if err == nil {
		return ExitDone
	}
	if errors.Is(err, ErrCheck) {
		return ExitCheck
	}
	if reported := (*ReportedError)(nil); errors.As(err, &reported) {
		return reported.Status
	}
	say := func(text string) { io.WriteString(stderr, text+"\n") } //nolint:errcheck // nobody is left to tell
	say(Red(stderr, "devmap:") + " " + errorText(err, words))
	var inf *Infeasible
	var workload *costmodel.FieldError
	var constraint *planner.ConstraintError
	var stage *planner.StageError
	var offload *planner.OffloadError
	var usage UsageError
	switch {
	case errors.As(err, &inf):
		for _, help := range inf.Helps {
			say("  " + OneLine(help))
		}
		return ExitInfeasible
	case errors.As(err, &offload) && offload.TooLittle:
		return ExitInfeasible
	case errors.As(err, &usage), errors.As(err, &workload), errors.As(err, &constraint), errors.As(err, &stage), errors.As(err, &offload), errors.Is(err, load.ErrUnsupported):
		return ExitUsage
	}
	return ExitError
}
