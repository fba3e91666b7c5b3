package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/report"
)

// turn is one turn of a plan on the GPUs: for --cycles N with A.json and B.json the turns are A B A
// B …, N of each.
type turn struct {
	*planRun

	cycle, of int64 // from 1
	ends      bool  // its cycle
	keeps     bool  // the plan sleeps between its turns
	unloaded  time.Time
}

// first and last report the ends of a plan's turns. A run writes dumps in its first step, and saves
// in its last.
func (turn *turn) first() bool { return turn.cycle == 1 }

func (turn *turn) last() bool { return turn.cycle == turn.of }

// woken reports a turn that begins with a wake.
func (turn *turn) woken() bool { return turn.keeps && !turn.first() }

// checkKeep checks --cycles against --keep.
func (command *runCommand) checkKeep() error {
	if command.Run.Keep == ask.Host && command.Run.Cycles == 1 {
		return out.Usagef("--keep %s: a plan with one turn never sleeps: give it more turns with --cycles N", ask.Host)
	}
	return nil
}

// takeTurns runs the turns of all plans. It closes sleeping plans at the end, even after an error.
// The error is ErrCheck if a verdict is fail.
func (command *runCommand) takeTurns(ctx context.Context, runs []planRun, carryOut func(turn *turn) (*report.Report, error)) (err error) {
	defer func() {
		if closed := closeSessions(runs); closed != nil {
			err = errors.Join(err, closed)
		}
	}()
	if err := command.checkMemory(ctx, runs); err != nil {
		return err
	}
	failed := false
	for cycle := range command.Run.Cycles {
		for i := range runs {
			turn := &turn{planRun: &runs[i], cycle: cycle + 1, of: command.Run.Cycles, ends: i == len(runs)-1, keeps: command.Run.Keep == ask.Host}
			if err := command.again(turn); err != nil {
				return err
			}
			measured, err := carryOut(turn)
			if err != nil {
				return err
			}
			failed = failed || measured.Verdict == report.Fail
			if err := command.after(turn); err != nil {
				return err
			}
		}
	}
	if command.Run.Keep == ask.Host {
		err := closeSessions(runs)
		asleep := &turn{planRun: new(planRun), cycle: command.Run.Cycles, of: command.Run.Cycles, unloaded: time.Now()}
		if err := errors.Join(err, command.after(asleep)); err != nil {
			return err
		}
	}
	if failed {
		return out.ErrCheck
	}
	return nil
}

// closeSessions releases the memory of sleeping plans.
func closeSessions(runs []planRun) error {
	var all []error
	for i := range runs {
		if err := runs[i].session.Close(); err != nil {
			all = append(all, fmt.Errorf("closing %s: %w", runs[i].file, err))
		}
	}
	return errors.Join(all...)
}

// again reopens inputs that an earlier turn has consumed.
func (command *runCommand) again(turn *turn) error {
	switch {
	case turn.first():
		return nil
	case turn.keeps:
		turn.settings.Weights, turn.settings.Resume = nil, ""
		return nil
	}
	return runInputs{command.Request}.weights(turn.planRun)
}

// checkMemory checks, before loading, that each plan fits on the GPUs, and that all copies fit in
// the host's memory. A single plan is checked when it is opened.
func (command *runCommand) checkMemory(ctx context.Context, runs []planRun) error {
	keeps := command.Run.Keep == ask.Host
	if len(runs) == 1 && !keeps || command.gpus == nil {
		return nil
	}
	var sessions []*executor.Session
	for i := range runs {
		sessions = append(sessions, &runs[i].session)
	}
	if at, err := executor.CheckMemory(ctx, sessions, keeps); err != nil {
		return errors.Join(runs[at].commandError(err), closeAll(runs))
	}
	return nil
}

// after reads the GPUs after a turn has released its arenas. It is called again, with an empty
// turn, after the sleeping plans are closed.
func (command *runCommand) after(turn *turn) error { return command.observer.look(turn, turn.unloaded) }

// asked returns the settings of a turn: those of its plan, without files that another turn writes.
func (turn *turn) asked() *executor.Settings {
	settings := turn.settings
	settings.Keep = turn.keeps
	if !turn.first() {
		settings.Dump.Logits, settings.Dump.Hidden, settings.Dump.Grads = "", "", ""
	}
	if !turn.last() {
		settings.Save.Model, settings.Save.State = "", ""
	}
	return &settings
}

// reportSleeps reports sleeps and wakes to the supervisor; next runs after a wake. A requested
// fault occurs during the copies.
func (turn *turn) reportSleeps(at func(place string), next func()) {
	watch, kill := &turn.settings.Watch, turn.kill
	reporter := func(before func(bytes, of int64), place, kind string, counted *int64, then func()) func(bytes, of int64) {
		ended := false
		return func(bytes, of int64) {
			before(bytes, of)
			if ended {
				then()
				return
			}
			ended = true
			at(place)
			*counted++
			if kill == (ask.Fault{Kind: kind, At: *counted}) {
				killed()
			}
		}
	}
	watch.Waking = reporter(watch.Waking, "while it wakes", ask.KillWake, turn.wakes, next)
	watch.Sleeping = reporter(watch.Sleeping, "while it goes to sleep", ask.KillSleep, turn.sleeps, func() {})
}

// printed prints a turn's measurements: everything for a plan's first turn, and one line for each
// later one.
func (command *runCommand) printed(printer *show.Printer, turn *turn, measured *report.Report) {
	if turn.first() {
		printer.Run(turn.job.placed, measured, command.gpus.where(turn.planRun))
		turn.verdict = measured.Verdict
	}
	printer.Turn(measured, measured.Verdict != turn.verdict || !turn.first() && measured.Verdict == report.Fail)
}
