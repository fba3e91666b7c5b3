package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// Session is a job that has turns on its devices, between which others may have
// theirs. A turn's end gives the arenas back; where the machine is a [Sleeper] and
// [Settings].Keep asks for it, what outlasts a step is kept, and the next turn goes on
// where this one stopped: turns of two steps make the bits of one of as many steps.
type Session struct {
	Backend Backend
	Job     *Job

	bound     *bind.Bound
	passes    []pass // of the job's head
	machine   Machine
	asleep    bool  // the machine
	done      int64 // steps, of an earlier run's too
	generated int64 // sequences
}

// Turn opens a machine and loads it, or wakes the one that sleeps, runs the steps,
// writes what was asked for, and closes the machine or has it sleep. What it writes
// appears whole at the end or not at all; ctx ends it early with its own error.
//
// Where a turn fails the machine is closed, but for a wake: that it leaves asleep, and
// another turn may wake it. Errors are those of [Run].
func (session *Session) Turn(ctx context.Context, settings *Settings) (result *Result, err error) {
	run := &running{Session: session, settings: settings, job: session.Job, source: settings.Weights, result: &Result{Backend: session.Backend.Name()}}
	defer func() {
		if err == nil {
			return
		}
		result, err = nil, errors.Join(err, run.closeSource(), run.discard())
		if !session.asleep {
			err = errors.Join(err, session.Close())
		}
	}()
	if err := settings.check(session.Job, session.asleep); err != nil {
		return nil, err
	}
	if !session.asleep {
		session.done, session.generated = 0, 0
	}
	if err := run.prepare(); err != nil {
		return nil, err
	}
	for _, part := range []func(ctx context.Context) error{run.start, run.steps, run.scan, run.save, run.end} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	return run.result, run.commit()
}

// start has the machine hold what the first step takes.
func (run *running) start(ctx context.Context) error {
	begin, turn := time.Now(), &run.result.Turn
	var err error
	if run.asleep {
		turn.Woken = true
		if turn.MapSeconds, turn.Start.Bytes, err = run.wake(ctx); err != nil {
			return err
		}
	} else {
		if run.machine, err = run.Backend.Open(ctx, run.bound); err != nil {
			run.machine = nil
			return err
		}
		turn.MapSeconds = time.Since(begin).Seconds()
		if turn.Start.Bytes, err = run.load(ctx); err != nil {
			return err
		}
	}
	turn.Start.Seconds = time.Since(begin).Seconds()
	turn.CopySeconds = turn.Start.Seconds - turn.MapSeconds
	if linked, is := run.machine.(Linked); is {
		run.result.Links = linked.Links()
	}
	return nil
}

// wake has a machine that sleeps go on.
func (run *running) wake(ctx context.Context) (mapped float64, bytes int64, err error) {
	sleeper, is := run.machine.(Sleeper)
	if !is {
		return 0, 0, errors.New("the machine sleeps, and cannot wake")
	}
	took, bytes, err := sleeper.Wake(ctx, run.watched(run.settings.Watch.Waking))
	if err != nil {
		return 0, 0, fmt.Errorf("the wake was rolled back: %w", err)
	}
	run.asleep = false
	return took.Seconds(), bytes, nil
}

// end gives the arenas back.
func (run *running) end(ctx context.Context) (err error) {
	begin, turn := time.Now(), &run.result.Turn
	run.result.Growth = run.machine.Growth()
	if err := ctx.Err(); err != nil {
		return err
	}
	machine := run.machine
	if run.settings.Keep {
		sleeper, is := machine.(Sleeper)
		if !is {
			return fmt.Errorf("a machine of %s keeps nothing of its arenas", run.Backend.Name())
		}
		if turn.End.Bytes, err = sleeper.Sleep(ctx, run.watched(run.settings.Watch.Sleeping)); err != nil {
			return err
		}
		run.asleep, turn.Asleep = true, true
	} else {
		err = run.Close()
	}
	turn.End.Seconds = time.Since(begin).Seconds()
	if meter, is := machine.(Meter); is {
		run.result.GPUs = meter.Measured()
	}
	return err
}

// watched is a function that may be called where nobody watches.
func (*running) watched(told func(bytes, of int64)) func(bytes, of int64) {
	if told == nil {
		return func(int64, int64) {}
	}
	return told
}

// Close gives everything back that the session holds, asleep or not. It may be called
// again, and a turn behind it begins anew.
func (session *Session) Close() error {
	machine := session.machine
	session.machine, session.asleep = nil, false
	if machine == nil {
		return nil
	}
	return machine.Close()
}
