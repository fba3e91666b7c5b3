package executor

import (
	"context"
	"errors"

	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// Run carries out a program: it loads the weights, runs the steps, and writes
// what was asked for. What it writes appears whole at the end or not at all, and
// the machine is closed, whatever fails; ctx ends it early with its own error.
//
// Errors are a [*costmodel.FieldError] for settings, a [*RoomError], a
// [*ValueError], or of files.
func Run(ctx context.Context, backend Backend, job *Job, settings *Settings) (result *Result, err error) {
	run := &running{job: job, settings: settings, source: settings.Weights, result: &Result{Backend: backend.Name()}}
	defer func() {
		if err = errors.Join(err, run.closeSource(), run.discard()); err != nil {
			result = nil
		}
	}()
	if err := settings.Check(job); err != nil {
		return nil, err
	}
	if err := run.prepare(); err != nil {
		return nil, err
	}
	if err := run.onMachine(ctx, backend); err != nil {
		return nil, err
	}
	return run.result, run.commit()
}

// prepare finds everything that can be wrong without an arena: what the program
// does not fit, what a state was saved of, where files are to lie.
func (run *running) prepare() (err error) {
	run.bound, err = bind.New(run.job.Graph, run.job.Workload, run.job.Recipe, run.job.Program)
	if err != nil {
		return err
	}
	for _, part := range []func() error{run.resume, run.findPasses, run.dump, run.saved} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// onMachine is everything that needs the arenas.
func (run *running) onMachine(ctx context.Context, backend Backend) (err error) {
	run.machine, err = backend.Open(ctx, run.bound)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, run.machine.Close())
		if meter, is := run.machine.(Meter); is {
			run.result.GPUs = meter.Measured()
		}
	}()
	if linked, is := run.machine.(Linked); is {
		run.result.Links = linked.Links()
	}
	for _, part := range []func(ctx context.Context) error{run.load, run.steps, run.scan, run.save} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	run.result.Growth = run.machine.Growth()
	return ctx.Err()
}
