package executor

import (
	"context"
	"errors"
)

// Session is a job that has turns on its devices, between which others may have
// theirs. A turn's end gives the arenas back; where the machine is a [Sleeper] and
// [Settings].Keep asks for it, what outlasts a step is kept, and the next turn goes on
// where this one stopped: turns of two steps make the bits of one of as many steps.
type Session struct {
	Backend Backend
	Job     *Job

	held held
}

// Turn opens a machine and loads it, or wakes the one that sleeps, runs the steps,
// writes what was asked for, and closes the machine or has it sleep. What it writes
// appears whole at the end or not at all; ctx ends it early with its own error.
//
// Where a turn fails the machine is closed, but for a wake: that it leaves asleep, and
// another turn may wake it. Errors are those of [Run].
func (session *Session) Turn(ctx context.Context, settings *Settings) (result *Result, err error) {
	held := session.begun()
	run := &running{held: held, settings: settings, source: settings.Weights, result: &Result{Backend: session.Backend.Name()}}
	defer func() {
		if err == nil {
			return
		}
		result, err = nil, errors.Join(err, otherThan(err, run.closeSource()), run.discard())
		if !held.asleep {
			err = errors.Join(err, held.close())
		}
	}()
	if err := settings.check(session.Job, held.asleep); err != nil {
		return nil, err
	}
	if !held.asleep {
		held.done, held.generated = 0, 0
	}
	saver := &saver{running: run}
	if err := run.prepare(saver); err != nil {
		return nil, err
	}
	start := func(ctx context.Context) error { return run.start(ctx, session.Backend) }
	for _, part := range []func(ctx context.Context) error{start, run.steps, scanner{held, run.result}.scan, saver.save, run.end} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return run.result, run.commit()
}

// Close gives everything back that the session holds, asleep or not. It may be called
// again, and a turn behind it begins anew.
func (session *Session) Close() error { return session.held.close() }

// begun is what the session's turns hand on.
func (session *Session) begun() *held {
	session.held.job = session.Job
	return &session.held
}
