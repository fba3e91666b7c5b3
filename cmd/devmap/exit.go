package main

import (
	"errors"
	"io"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner"
)

// The exit statuses of the contract.
const (
	exitDone       = 0
	exitError      = 1
	exitUsage      = 2
	exitInfeasible = 3
	exitCheck      = 4
)

// usageError is a fault in how the command was called.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// infeasible is a problem that fits nowhere, with what would help.
type infeasible struct {
	err   error
	helps []string
}

func (e *infeasible) Error() string { return e.err.Error() }
func (e *infeasible) Unwrap() error { return e.err }

// errCheck is a device map with faults, which were printed.
var errCheck = errors.New("the check failed")

// report prints an error and turns it into an exit status.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitDone
	}
	if errors.Is(err, errCheck) {
		return exitCheck
	}
	say := func(s string) { io.WriteString(stderr, s+"\n") } //nolint:errcheck // nobody is left to tell
	say("devmap: " + errorText(err))
	var inf *infeasible
	var workload *costmodel.FieldError
	var pattern *planner.PatternError
	var conflict *planner.ConflictError
	var stage *planner.StageError
	var unsupported *load.UnsupportedError
	var timed *steptime.Error
	var offload *planner.OffloadError
	var usage usageError
	switch {
	case errors.As(err, &inf):
		for _, h := range inf.helps {
			say("  " + oneLine(h))
		}
		return exitInfeasible
	case errors.As(err, &offload) && offload.TooLittle:
		return exitInfeasible
	case errors.As(err, &usage), errors.As(err, &workload), errors.As(err, &pattern), errors.As(err, &conflict), errors.As(err, &stage), errors.As(err, &timed), errors.As(err, &offload), errors.As(err, &unsupported):
		return exitUsage
	}
	return exitError
}
