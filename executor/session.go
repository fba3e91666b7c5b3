package executor

import (
	"context"
	"errors"
)

// Session is a job that has turns on its devices, between which other jobs may have theirs. A
// turn's end releases the arenas. If the machine is a [Sleeper] and [Settings].Keep asks for it,
// what outlasts a step is kept, and the next turn continues from there. Several short turns then
// compute the same bits as one long turn.
type Session struct {
	Backend Backend
	Job     *Job

	state sessionState
}

// Turn opens a machine and loads it, or wakes the one that sleeps. It runs the steps, writes the
// requested files, and closes the machine or has it sleep. The files appear whole at the end or not
// at all. If ctx ends, Turn ends early with its error.
//
// If a turn fails the machine is closed. A failed wake leaves it asleep instead: another turn may
// wake it. Errors are those of [Run].
func (session *Session) Turn(ctx context.Context, settings *Settings) (result *Result, err error) {
	state := session.sharedState()
	run := &running{sessionState: state, settings: settings, source: settings.Weights, result: &Result{Backend: session.Backend.Name()}}
	defer func() {
		if err == nil {
			return
		}
		result, err = nil, errors.Join(err, otherThan(err, run.closeSource()), run.discard())
		if !state.asleep {
			err = errors.Join(err, state.close())
		}
	}()
	if err := settings.check(session.Job, state.asleep); err != nil {
		return nil, err
	}
	if !state.asleep {
		state.done, state.generated = 0, 0
	}
	saver := &saver{running: run}
	if err := run.prepare(saver); err != nil {
		return nil, err
	}
	start := func(ctx context.Context) error { return run.start(ctx, session.Backend) }
	for _, part := range []func(ctx context.Context) error{start, run.steps, scanner{sessionState: state, result: run.result}.scan, saver.save, run.end} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return run.result, run.commit()
}

// Close releases everything that the session has, asleep or not. It may be called again. A later
// turn begins from scratch.
func (session *Session) Close() error { return session.state.close() }

// sharedState is the state that the session's turns share, with its job set.
func (session *Session) sharedState() *sessionState {
	session.state.job = session.Job
	return &session.state
}
