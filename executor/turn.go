package executor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/executor/internal/bind"
)

// prepare finds everything that can be wrong before an arena exists. That is a program that does
// not fit the recipe, the state of another run, or a place of a file.
func (run *running) prepare(saver *saver) error {
	for _, part := range []func() error{run.bind, saver.resume, dumper{run}.begin, saver.saved} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// bind binds the program, once for all turns.
func (state *sessionState) bind() (err error) {
	if state.bound != nil {
		return nil
	}
	bound, err := bind.New(state.job.Graph, state.job.Workload, state.job.Recipe, state.job.Program)
	if err != nil {
		return err
	}
	state.bound = bound
	state.passes, err = state.passesOf(state.job.head())
	return err
}

// start loads or wakes the machine for the first step.
func (run *running) start(ctx context.Context, backend Backend) error {
	begin, turn := time.Now(), &run.result.Turn
	var err error
	if run.asleep {
		turn.Woken = true
		if turn.MapSeconds, turn.Start.Bytes, err = run.wake(ctx); err != nil {
			return err
		}
	} else {
		if run.machine, err = backend.Open(ctx, run.bound); err != nil {
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

// wake wakes a machine that sleeps.
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

// end releases the arenas, or has the machine sleep.
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
			return fmt.Errorf("a machine of %s keeps nothing of its arenas", run.result.Backend)
		}
		if turn.End.Bytes, err = sleeper.Sleep(ctx, run.watched(run.settings.Watch.Sleeping)); err != nil {
			return err
		}
		run.asleep, turn.Asleep = true, true
	} else {
		err = run.close()
	}
	turn.End.Seconds = time.Since(begin).Seconds()
	if meter, is := machine.(Meter); is {
		run.result.GPUs = meter.Measured()
	}
	return err
}

// watched returns onProgress, or a function that does nothing if it is nil.
func (*running) watched(onProgress func(bytes, of int64)) func(bytes, of int64) {
	if onProgress == nil {
		return func(int64, int64) {}
	}
	return onProgress
}
