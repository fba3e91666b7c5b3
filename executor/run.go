package executor

import (
	"context"
	"errors"

	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// Run carries out a program: it loads the weights, runs the steps, and writes
// what was asked for. What it writes appears whole at the end or not at all, and
// the machine is closed, whatever fails; ctx ends it early with its own error. It is
// a [Session] of one turn.
//
// Errors are a [*costmodel.FieldError] for settings, a [*RoomError], a
// [*ValueError], or of files.
func Run(ctx context.Context, backend Backend, job *Job, settings *Settings) (*Result, error) {
	session := &Session{Backend: backend, Job: job}
	result, err := session.Turn(ctx, settings)
	if closed := session.Close(); closed != nil {
		return nil, errors.Join(err, closed)
	}
	return result, err
}

// prepare finds everything that can be wrong without an arena: what the program
// does not fit, what a state was saved of, where files are to lie.
func (run *running) prepare() error {
	if err := run.bind(); err != nil {
		return err
	}
	for _, part := range []func() error{run.resume, run.dump, run.saved} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// bind is done once for all turns.
func (session *Session) bind() (err error) {
	if session.bound != nil {
		return nil
	}
	bound, err := bind.New(session.Job.Graph, session.Job.Workload, session.Job.Recipe, session.Job.Program)
	if err != nil {
		return err
	}
	session.bound = bound
	session.passes, err = session.passesOf(session.Job.head())
	return err
}
