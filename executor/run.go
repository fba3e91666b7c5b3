package executor

import (
	"context"
	"errors"
)

// Run runs a program: it loads the weights, runs the steps, and writes the requested files. These
// appear whole at the end or not at all, and the machine is closed, whatever fails. If ctx ends,
// Run ends early with its error. It is a [Session] of one turn.
//
// Errors are a [*costmodel.FieldError] for settings, a [*MemoryError], a [*ValueError], or of
// files.
func Run(ctx context.Context, backend Backend, job *Job, settings *Settings) (*Result, error) {
	session := &Session{Backend: backend, Job: job}
	result, err := session.Turn(ctx, settings)
	if closed := session.Close(); closed != nil {
		return nil, errors.Join(err, closed)
	}
	return result, err
}
