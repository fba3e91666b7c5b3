package main

import (
	"time"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/report"
)

// turn is one of the times that a plan has the GPUs: of --cycles N of A.json B.json
// the turns are A B A B …, N of each.
type turn struct {
	*planRun

	cycle, of int64 // from 1
	ends      bool  // its cycle
	unloaded  time.Time
}

// first and last are of a plan's turns. What a run dumps is of its first step, and
// what it saves is of its last.
func (turn *turn) first() bool { return turn.cycle == 1 }

func (turn *turn) last() bool { return turn.cycle == turn.of }

// takeTurns carries out the turns of all plans; ErrCheck: a verdict is fail.
func (command *runCommand) takeTurns(runs []planRun, carryOut func(turn *turn) (*report.Report, error)) error {
	failed := false
	for cycle := range command.Run.Cycles {
		for i := range runs {
			turn := &turn{planRun: &runs[i], cycle: cycle + 1, of: command.Run.Cycles, ends: i == len(runs)-1}
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
	if failed {
		return out.ErrCheck
	}
	return nil
}

// again opens anew what a turn before has used up.
func (command *runCommand) again(turn *turn) error {
	if turn.first() {
		return nil
	}
	return command.weights(turn.planRun)
}

// after is called when a turn has given its arenas back: what is to be looked at
// between two turns is looked at here.
func (command *runCommand) after(turn *turn) error { return command.look(turn, turn.unloaded) }

// asked are the settings of a turn: those of its plan, but for files that are
// written of another.
func (turn *turn) asked() *executor.Settings {
	settings := turn.settings
	if !turn.first() {
		settings.Dump.Logits, settings.Dump.Hidden, settings.Dump.Grads = "", "", ""
	}
	if !turn.last() {
		settings.Save.Model, settings.Save.State = "", ""
	}
	return &settings
}
