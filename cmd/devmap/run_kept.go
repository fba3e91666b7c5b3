package main

import (
	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/show"
	"github.com/devmap-dev/devmap/executor/report"
)

// tellOfKept tells the supervisor of sleeps and wakes; next is what follows a wake. The
// fault that is asked for comes when the copies are under way.
func (turn *turn) tellOfKept(at func(place string), next func()) {
	watch, kill := &turn.settings.Watch, turn.kill
	told := func(before func(bytes, of int64), place, kind string, counted *int64, then func()) func(bytes, of int64) {
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
	watch.Waking = told(watch.Waking, "while it wakes", ask.KillWake, turn.wakes, next)
	watch.Sleeping = told(watch.Sleeping, "while it goes to sleep", ask.KillSleep, turn.sleeps, func() {})
}

// printed says what a turn measured: of a plan's first all of it, of every later one a
// line.
func (command *runCommand) printed(printer *show.Printer, turn *turn, measured *report.Report) {
	if turn.first() {
		printer.Run(turn.job.placed, measured, command.where(turn.planRun))
		turn.verdict = measured.Verdict
	}
	printer.Turn(measured, measured.Verdict != turn.verdict || !turn.first() && measured.Verdict == report.Fail)
}
